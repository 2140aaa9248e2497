// Whether the files of a distributed checkpoint are of one save, as far as the optimizer's own
// counts of updates tell: a file of another step fits the metadata in every other way.
#pragma once

#include "ckptverify/checkpoint.h"

namespace ckptverify {

/// Notes a failure (uncommitted) where the parameters that one file counts have all seen another
/// number of updates than those of another, though both files hold parts of all of them; a warning
/// where that may be a matter of parameters that were unfrozen later.
void check_dcp_steps(Checkpoint& checkpoint);

}  // namespace ckptverify
