// Which checkpoint of a folder a resume would take, by the rule of the framework whose names it
// finds there, and what is wrong with that.
#pragma once

#include "ckptverify/source.h"
#include "formats/collection_items.h"

namespace ckptverify {

/// Files and links of the folder that name one of the items, in the order in which they count.
std::vector<CollectionPointer> find_pointers(const Source& source,
                                             const std::vector<CollectionItem>& items);

/// Sets rule, pick and newest_whole from items and pointers.
void pick_item(const Source& source, Collection& collection);

/// What the folder's state means for a resume.
std::vector<Finding> collection_findings(const Collection& collection);

}  // namespace ckptverify
