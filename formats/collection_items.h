// What is found in a folder of several checkpoints: the checkpoints, the pointers to them, and what
// a resume would make of both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ckptverify/finding.h"

namespace ckptverify {

enum class Wholeness {
  kWhole,
  kNotWhole,
  kUnknown,  // cannot be read here, which says nothing about it
};

/// "whole", "not whole", "unknown".
std::string_view wholeness_name(Wholeness wholeness);

struct CollectionItem {
  std::string name;                        // in the folder: "checkpoint-500"
  std::optional<std::uint64_t> step = {};  // of the name, else of the content
  bool temporary = false;                  // has a name that its writer has yet to change
  std::string format = {};                 // a name of the table; empty where none read it
  Wholeness wholeness = Wholeness::kUnknown;
  std::string why = {};             // where it is not whole or unknown: one sentence
  std::optional<Cause> cause = {};  // of the same, where its reader names one
  std::string family = {};          // its name with '#' for numbers
};

/// A file or link that names one of them.
struct CollectionPointer {
  std::string name;                      // "latest"
  std::string target;                    // what it says
  std::optional<std::size_t> item = {};  // which that is; none: nothing in the folder
  bool resumes = true;                   // false for "best", which no resume follows
};

struct Collection {
  std::vector<CollectionItem> items;  // by step, then by name, numbers as numbers
  std::vector<CollectionPointer> pointers = {};
  std::string rule = {};                         // how a resume picks, one sentence
  std::optional<std::size_t> pick = {};          // of the items
  std::optional<std::size_t> newest_whole = {};  // of the items
  std::vector<Finding> findings = {};            // static.collection
};

}  // namespace ckptverify
