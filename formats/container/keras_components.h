// What the weights of a Keras model are for, by where its saving library puts them: the groups of
// the file mirror the tree of objects, and an optimizer numbers its variables.
#pragma once

#include <vector>

#include "ckptverify/checkpoint.h"

namespace ckptverify {

/// Paths as Keras 3 writes them ("layers.dense.vars.0"), or as Keras 2 did ("model_weights.dense").
bool is_keras_weights(const std::vector<Entry>& entries);

/// Sets component and root of every entry.
void assign_keras_components(std::vector<Entry>& entries);

}  // namespace ckptverify
