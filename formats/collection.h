// A folder of several checkpoints of one run: which there are, which are whole, which one a resume
// would pick, and whether that is the newest whole one. Found by the names of directories and
// files; read by the formats that recognise them.
#pragma once

#include <optional>

#include "ckptverify/format.h"
#include "ckptverify/result.h"
#include "formats/collection_items.h"

namespace ckptverify {

/// Nothing where the source is no folder of checkpoints: a file, one checkpoint, something else.
/// Reads every item as deep as the table does; errors are those of listing the folder.
Result<std::optional<Collection>> find_collection(const Source& source, const FormatTable& table);

/// The usage error for a command that needs one checkpoint and was given the folder.
Error name_one_of(const Source& source, const Collection& collection);

}  // namespace ckptverify
