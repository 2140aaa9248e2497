// How pickles write numbers and strings: two's complement of any size, decimal text, quoted and
// escaped text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ckptverify/bytes.h"
#include "ckptverify/result.h"
#include "ckptverify/value.h"

namespace ckptverify {

/// Python writes lone surrogates of its strings as if they were UTF-8.
enum class Surrogates { kRefused, kAllowed };

bool is_utf8(std::string_view text, Surrogates surrogates);
/// The code points of valid UTF-8 as bytes, the "latin1" of Python 3's bytes in protocol 2; an
/// error where one is above 0xff.
Result<std::vector<std::byte>> latin1_of_utf8(std::string_view text);

/// Little-endian two's complement; nothing is 0.
Value integer_of_bytes(Bytes bytes);
/// Decimal digits with an optional sign.
Result<Value> integer_of_text(std::string_view text);
Result<double> float_of_text(std::string_view text);
/// Python's repr of a string: quotes, backslash escapes.
Result<std::string> unquoted(std::string_view text);
/// raw-unicode-escape: Latin-1 with \uXXXX and \UXXXXXXXX; as UTF-8.
Result<std::string> unescaped_unicode(std::string_view text);

}  // namespace ckptverify
