// The page's style sheet: light and dark by what the reader's system asks for, one column on a
// phone, everything unfolded on paper. Colours carry no meaning alone: every status is written out.
#pragma once

#include <string_view>

namespace ckptverify {

std::string_view page_style();

}  // namespace ckptverify
