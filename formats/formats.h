// The formats that are built in, in the order in which they are asked.
#pragma once

#include "ckptverify/format.h"

namespace ckptverify {

FormatTable formats();

}  // namespace ckptverify
