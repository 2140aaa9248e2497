// Source: POSIX.1-1988 ustar interchange format.
#include "formats/container/tar.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace ckptverify {
namespace {

constexpr std::uint64_t kBlock = 512;
constexpr std::size_t kNameSize = 100;
constexpr std::size_t kSizeAt = 124;
constexpr std::size_t kSizeDigits = 12;
constexpr std::size_t kChecksumAt = 148;
constexpr std::size_t kChecksumDigits = 8;
constexpr std::size_t kTypeAt = 156;
constexpr std::size_t kMagicAt = 257;

Error fault(std::uint64_t offset, CauseKind cause, std::string message) {
  return {.message = std::move(message), .offset = offset, .cause = Cause{cause}};
}

bool is_zero(Bytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

std::string_view text_until_zero(Bytes field) {
  const std::string_view text = as_text(field);
  return text.substr(0, text.find('\0'));
}

/// Octal digits, between spaces and zero bytes.
std::optional<std::uint64_t> octal(Bytes field) {
  std::uint64_t value = 0;
  bool any = false;
  for (const char c : text_until_zero(field)) {
    if (c == ' ') continue;
    if (c < '0' || c > '7') return std::nullopt;
    value = value * 8 + static_cast<std::uint64_t>(c - '0');
    any = true;
  }
  return any ? std::optional(value) : std::nullopt;
}

/// The sum of the header's bytes, its own field taken for spaces.
std::uint64_t checksum_of(Bytes header) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const bool own = i >= kChecksumAt && i < kChecksumAt + kChecksumDigits;
    sum += own ? std::uint64_t{' '} : std::to_integer<std::uint64_t>(header[i]);
  }
  return sum;
}

class Reading {
 public:
  explicit Reading(Bytes bytes) : bytes_(bytes) {}
  Result<TarArchive> run();

 private:
  Result<void> read_member(Bytes header);
  Result<void> read_end();
  void claim(std::uint64_t offset, std::uint64_t size, Owner owner, std::string label) {
    archive_.framing.push_back({{0, offset, size}, owner, std::move(label)});
  }
  void note(std::uint64_t offset, const std::string& message) {
    archive_.findings.push_back({.check = "static.container",
                                 .status = Status::kFail,
                                 .cause = Cause{CauseKind::kLayout},
                                 .message = "byte " + std::to_string(offset) + ": " + message,
                                 .evidence = {{"offset", std::to_string(offset)}}});
  }

  Bytes bytes_;
  std::uint64_t at_ = 0;
  TarArchive archive_;
  std::set<std::string> names_;
};

Result<void> Reading::read_member(Bytes header) {
  const auto stored = octal(header.subspan(kChecksumAt, kChecksumDigits));
  if (const auto sum = checksum_of(header); stored != sum) {
    return fault(at_ + kChecksumAt, CauseKind::kBitrot,
                 "a tar header's checksum is wrong; found " + std::to_string(stored.value_or(0)) +
                     ", expected " + std::to_string(sum));
  }
  const auto size = octal(header.subspan(kSizeAt, kSizeDigits));
  if (!size) {
    return Error{.kind = ErrorKind::kUnsupported,
                 .message = "a tar member's size is not written in octal digits",
                 .offset = at_ + kSizeAt};
  }
  const std::string name(text_until_zero(header.first(kNameSize)));
  claim(at_, kBlock, Owner::kFraming, "tar header of " + name);
  at_ += kBlock;
  if (*size > bytes_.size() - at_) {
    return fault(bytes_.size(), CauseKind::kTrunc,
                 "the file ends inside of " + name + "; found " +
                     std::to_string(bytes_.size() - at_) + " bytes, expected " +
                     std::to_string(*size));
  }
  const char type = static_cast<char>(header[kTypeAt]);
  if (type == '0' || type == '\0') {
    if (!names_.insert(name).second) {
      return fault(at_ - kBlock, CauseKind::kLayout,
                   "two tar members have one name; found \"" + name + "\" twice");
    }
    archive_.members.push_back({.name = name, .offset = at_, .size = *size});
  } else {
    claim(at_, *size, Owner::kUnverifiable, "tar extension");  // names and times of PAX
  }
  at_ += *size;
  const std::uint64_t padding = std::min((kBlock - *size % kBlock) % kBlock, bytes_.size() - at_);
  if (!is_zero(bytes_.subspan(at_, padding))) note(at_, "tar padding is not zero");
  claim(at_, padding, Owner::kPadding, "tar padding of " + name);
  at_ += padding;
  return {};
}

/// Two blocks of zeros, and nothing else up to the end.
Result<void> Reading::read_end() {
  const Bytes rest = bytes_.subspan(at_);
  if (rest.size() < 2 * kBlock) {
    return fault(bytes_.size(), CauseKind::kTrunc,
                 "the tar archive has no end; found " + std::to_string(rest.size()) +
                     " bytes, expected at least " + std::to_string(2 * kBlock));
  }
  const auto bad =
      std::find_if(rest.begin(), rest.end(), [](std::byte b) { return b != std::byte{0}; });
  const auto zeros = static_cast<std::uint64_t>(bad - rest.begin());
  claim(at_, zeros, Owner::kPadding, "end of the tar archive");
  if (bad != rest.end()) {
    note(at_ + zeros, "bytes after the end of the tar archive; found " +
                          std::to_string(rest.size() - zeros) + ", expected 0");
  }
  return {};
}

Result<TarArchive> Reading::run() {
  for (;;) {
    const Bytes rest = bytes_.subspan(at_);
    if (rest.size() < kBlock || is_zero(rest.first(kBlock))) break;
    CKPTVERIFY_TRY_VOID(read_member(rest.first(kBlock)));
  }
  CKPTVERIFY_TRY_VOID(read_end());
  return std::move(archive_);
}

}  // namespace

Result<TarArchive> read_tar(Bytes bytes) {
  return Reading(bytes).run();
}

std::string_view first_tar_name(Bytes bytes) {
  if (bytes.size() < kBlock) return {};
  const Bytes header = bytes.first(kBlock);
  if (!as_text(header.subspan(kMagicAt)).starts_with("ustar")) return {};
  if (octal(header.subspan(kChecksumAt, kChecksumDigits)) != checksum_of(header)) return {};
  return text_until_zero(header.first(kNameSize));
}

}  // namespace ckptverify
