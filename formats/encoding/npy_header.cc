// Source: numpy/lib/_format_impl.py (read_array_header_*, dtype_to_descr).
#include "formats/encoding/npy_header.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "formats/encoding/numpy_types.h"
#include "formats/encoding/pickle_text.h"

namespace ckptverify {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::uint64_t kVersionSize = 2;
// Structured types of a thousand fields fit; NumPy itself refuses more than 10,000 by default.
constexpr std::uint64_t kTextBytesMax = 1 << 20;
constexpr std::size_t kRankMax = 64;  // NPY_MAXDIMS
constexpr unsigned kNestingMax = 32;  // of records in records
constexpr std::uint8_t kMajorMax = 3;

Error fault(std::uint64_t offset, std::string message, CauseKind cause = CauseKind::kBitrot) {
  return {.message = std::move(message), .offset = offset, .cause = Cause{cause, {}}};
}

/// The literal, character by character.
class Literal {
 public:
  Literal(std::string_view text, std::uint64_t base) : text_(text), base_(base) {}

  std::uint64_t offset() const { return base_ + at_; }
  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  Result<void> expect(char c) {
    if (accept(c)) return {};
    return unexpected(std::string("'") + c + "'");
  }
  Error unexpected(const std::string& expected) {
    const char found = peek();
    const std::string shown = found == '\0'   ? "the end"
                              : found == '\n' ? "the end of the line"
                                              : std::string("'") + found + "'";
    return fault(offset(), "header is no dictionary as NumPy writes it; found " + shown +
                               ", expected " + expected);
  }
  Result<std::string> string();
  Result<bool> boolean();
  Result<std::vector<std::uint64_t>> dimensions();
  /// A list as text: the fields of a record.
  Result<std::string> list();
  /// Spaces and the end of the line, and nothing else.
  Result<void> end();

 private:
  std::string_view text_;
  std::uint64_t base_;
  std::size_t at_ = 0;
};

Result<std::string> Literal::string() {
  const char quote = peek();
  if (quote != '\'' && quote != '"') return unexpected("a string");
  const std::size_t end = text_.find(quote, at_ + 1);
  if (end == std::string_view::npos) return unexpected("a string that ends");
  const std::string_view found = text_.substr(at_ + 1, end - at_ - 1);
  if (found.find('\\') != std::string_view::npos) return unexpected("a string without escapes");
  at_ = end + 1;
  return std::string(found);
}

Result<bool> Literal::boolean() {
  peek();
  for (const auto& [word, value] : {std::pair{"True", true}, std::pair{"False", false}}) {
    if (!text_.substr(at_).starts_with(word)) continue;
    at_ += std::string_view(word).size();
    return value;
  }
  return unexpected("True or False");
}

Result<std::vector<std::uint64_t>> Literal::dimensions() {
  CKPTVERIFY_TRY_VOID(expect('('));
  std::vector<std::uint64_t> shape;
  while (!accept(')')) {
    peek();
    std::uint64_t number = 0;
    const char* begin = text_.data() + at_;
    const auto [end, problem] = std::from_chars(begin, text_.data() + text_.size(), number);
    if (problem != std::errc()) return unexpected("a dimension of up to 64 bits");
    at_ += static_cast<std::size_t>(end - begin);
    accept('L');  // Python 2's long integers
    shape.push_back(number);
    if (shape.size() > kRankMax) return unexpected("at most 64 dimensions");
    if (!accept(',') && peek() != ')') return unexpected("',' or ')'");
  }
  return shape;
}

Result<std::string> Literal::list() {
  const std::size_t begin = at_;
  unsigned depth = 0;
  do {
    const char c = peek();
    if (c == '\'' || c == '"') {
      CKPTVERIFY_TRY_VOID(string());
      continue;
    }
    if (c == '\0' || c == '\n') return unexpected("']'");
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    if (depth > kNestingMax) return unexpected("fewer records in records");
    ++at_;
  } while (depth > 0);
  return std::string(text_.substr(begin, at_ - begin));
}

Result<void> Literal::end() {
  if (peek() == '\n' && at_ + 1 == text_.size()) return {};
  return unexpected("spaces and one end of the line");
}

/// "<f4": order, kind, size.
Result<void> interpret(NpyHeader& header, std::uint64_t offset) {
  const std::string_view descr = header.descr;
  if (descr.starts_with('[')) return {};
  const bool has_order = !descr.empty() && std::string_view("<>|=").find(descr[0]) != descr.npos;
  const std::string_view code = has_order ? descr.substr(1) : descr;
  if (code.empty() || (!has_order && code != "O"))
    return fault(offset, "descr is no type of NumPy; found '" + header.descr +
                             "', expected a byte order, a kind and a size");
  if (descr[0] == '>') header.byte_order = ByteOrder::kBig;
  header.dtype = numpy_dtype(code);
  if (header.dtype) {
    header.element_size = dtype_size(*header.dtype);
    if (*header.element_size > 1 && descr[0] != '<' && descr[0] != '>')
      return fault(offset, "descr has no byte order; found '" + header.descr +
                               "', expected '<' or '>' first");
    return {};
  }
  if (code == "O") return {};
  std::uint64_t size = 0;
  const std::string_view digits = code.substr(1, code.find('[') - 1);
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  if (problem != std::errc() || end != digits.data() + digits.size() ||
      std::string_view("biufcmMSUVa").find(code[0]) == std::string_view::npos)
    return fault(offset, "descr is no type of NumPy; found '" + header.descr +
                             "', expected a byte order, a kind and a size");
  CKPTVERIFY_TRY(header.element_size, checked_multiply(size, code[0] == 'U' ? 4 : 1));
  return {};
}

Result<void> parse_text(Literal literal, NpyHeader& header) {
  CKPTVERIFY_TRY_VOID(literal.expect('{'));
  std::array<bool, 3> seen{};
  while (!literal.accept('}')) {
    const std::uint64_t key_at = literal.offset();
    CKPTVERIFY_TRY(const std::string key, literal.string());
    CKPTVERIFY_TRY_VOID(literal.expect(':'));
    const std::size_t which = key == "descr" ? 0 : key == "fortran_order" ? 1 : 2;
    if ((which == 2 && key != "shape") || seen.at(which))
      return fault(key_at, "header has an unknown or repeated key; found '" + key +
                               "', expected descr, fortran_order and shape once each");
    seen.at(which) = true;
    if (which == 0) {
      const std::uint64_t at = literal.offset();
      CKPTVERIFY_TRY(header.descr, literal.peek() == '[' ? literal.list() : literal.string());
      CKPTVERIFY_TRY_VOID(interpret(header, at));
    } else if (which == 1) {
      CKPTVERIFY_TRY(header.fortran_order, literal.boolean());
    } else {
      CKPTVERIFY_TRY(header.shape, literal.dimensions());
    }
    if (!literal.accept(',') && literal.peek() != '}') return literal.unexpected("',' or '}'");
  }
  if (!seen[0] || !seen[1] || !seen[2])
    return fault(literal.offset(), "header lacks a key; expected descr, fortran_order and shape");
  return literal.end();
}

Result<Bytes> header_text(ByteReader& reader, Bytes bytes) {
  constexpr std::uint64_t kWideFrom = 2;
  const auto ends_early = [&](std::uint64_t needed) {
    return fault(bytes.size(),
                 "file ends inside its header; found " + std::to_string(bytes.size()) +
                     " bytes, expected at least " + std::to_string(needed),
                 CauseKind::kTrunc);
  };
  const std::uint64_t prefix = kMagic.size() + kVersionSize;
  if (bytes.size() < prefix) return ends_early(prefix);
  CKPTVERIFY_TRY_VOID(reader.seek(kMagic.size()));
  CKPTVERIFY_TRY(const std::uint8_t major, reader.u8());
  CKPTVERIFY_TRY(const std::uint8_t minor, reader.u8());
  if (major == 0 || major > kMajorMax || minor != 0)
    return Error{.kind = ErrorKind::kUnsupported,
                 .message = "a version of the file format that is not read; found " +
                            std::to_string(major) + "." + std::to_string(minor) +
                            ", expected 1.0, 2.0 or 3.0",
                 .offset = kMagic.size()};
  const std::uint64_t width = major < kWideFrom ? 2 : 4;
  if (reader.remaining() < width) return ends_early(prefix + width);
  CKPTVERIFY_TRY(const Bytes size_bytes, reader.take(width));
  std::uint64_t size = 0;
  for (std::uint64_t i = width; i-- > 0;)
    size = size << 8 | std::to_integer<std::uint64_t>(size_bytes[static_cast<std::size_t>(i)]);
  if (size > kTextBytesMax)
    return fault(prefix, "header is too long; found " + std::to_string(size) +
                             " bytes, expected at most " + std::to_string(kTextBytesMax));
  if (size > reader.remaining()) return ends_early(prefix + width + size);
  return reader.take(size);
}

}  // namespace

bool has_npy_magic(Bytes bytes) {
  return as_text(bytes.first(std::min(bytes.size(), kMagic.size()))) == kMagic;
}

Result<NpyHeader> parse_npy_header(Bytes bytes) {
  if (!has_npy_magic(bytes))
    return fault(0, "does not begin as an array of NumPy; expected 93 and NUMPY");
  ByteReader reader(bytes);
  CKPTVERIFY_TRY(const Bytes text, header_text(reader, bytes));
  NpyHeader header;
  header.data_offset = reader.offset();
  CKPTVERIFY_TRY_VOID(parse_text(Literal(as_text(text), header.data_offset - text.size()), header));
  return header;
}

Result<void> check_npy_size(const NpyHeader& header, std::uint64_t file_size) {
  const auto count = checked_product(header.shape);
  if (!count) return fault(0, "the size of the shape does not fit 64 bits");
  if (!header.element_size) return {};
  const auto size = checked_multiply(*count, *header.element_size);
  const auto end = size ? checked_add(*size, header.data_offset) : size;
  if (!end) return fault(0, "the size of the shape does not fit 64 bits");
  if (file_size < *end)
    return fault(file_size,
                 "file ends before the array does; found " + std::to_string(file_size) +
                     " bytes, expected " + std::to_string(*end),
                 CauseKind::kTrunc);
  if (file_size > *end)
    return fault(*end,
                 "bytes follow the array; found " + std::to_string(file_size) +
                     " bytes, expected " + std::to_string(*end),
                 CauseKind::kLayout);
  return {};
}

Result<Tensor> npy_tensor(const NpyHeader& header, const Run& run) {
  CKPTVERIFY_ASSERT(header.dtype.has_value());
  CKPTVERIFY_TRY_VOID(check_npy_size(header, run.size));
  const std::uint64_t element = dtype_size(*header.dtype);
  Tensor tensor = contiguous_tensor(*header.dtype, header.shape, run);
  tensor.byte_order = header.byte_order;
  Piece& piece = tensor.pieces[0];
  if (run.decode == nullptr) {
    piece.run.offset += header.data_offset;
    piece.run.size -= header.data_offset;
    piece.run.stored_size = piece.run.size;
  } else if (header.data_offset % element == 0) {
    piece.first_element = header.data_offset / element;
  } else {
    // NumPy pads the header to a multiple of 16 at least; no type of ours is wider.
    return Error{.kind = ErrorKind::kUnsupported,
                 .message = "compressed data that are not aligned; found byte " +
                            std::to_string(header.data_offset) + ", expected a multiple of " +
                            std::to_string(element)};
  }
  if (header.fortran_order) {
    std::vector<std::uint64_t> reversed(header.shape.rbegin(), header.shape.rend());
    piece.strides = contiguous_strides(reversed);
    std::reverse(piece.strides.begin(), piece.strides.end());
  }
  return tensor;
}

}  // namespace ckptverify
