// A folder of several checkpoints on the command line: what `check` finds in it, what `inspect`
// shows of it.
#pragma once

#include <optional>
#include <vector>

#include "ckptverify/check.h"
#include "ckptverify/source.h"
#include "src/cli/command.h"

namespace ckptverify::cli {

/// The findings of a folder of checkpoints: its own, and all static checks of the checkpoint that a
/// resume would pick. Nothing where the source is no such folder.
Result<std::optional<std::vector<Finding>>> check_collection(const Source& source,
                                                             const CheckOptions& options);

/// Prints the checkpoints of a folder and returns true; false where the source is no such folder.
Result<bool> show_collection(const Source& source, Output output);

/// The usage error for a folder where one checkpoint is needed.
Result<void> refuse_collection(const Source& source);

}  // namespace ckptverify::cli
