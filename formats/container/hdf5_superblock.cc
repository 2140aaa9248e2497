// HDF5 File Format Specification, II.A.
//
//   v0, v1 | signature 8 | versions 5 | size of offsets, of lengths | 0 | k 4 | flags 4 | v1: k 2,
//   0 2
//          | base 8 | free space 8 | end of file 8 | driver 8 | root group
//   v2, v3 | signature 8 | version | size of offsets, of lengths | flags | base 8 | extension 8
//          | end of file 8 | root 8 | lookup3 of all before 4
#include "formats/container/hdf5_superblock.h"

#include <array>
#include <optional>
#include <string>
#include <utility>

namespace ckptverify {
namespace {

constexpr std::array<unsigned char, 8> kSignature = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
constexpr std::uint64_t kVersionOffset = 8;
constexpr std::uint8_t kFlagWrite = 0x01;
constexpr std::uint8_t kFlagSwmrWrite = 0x04;
constexpr std::uint64_t kUserBlockMin = 512;

Error damaged(std::uint64_t offset, std::string message, CauseKind cause = CauseKind::kBitrot) {
  return Error{.message = std::move(message), .offset = offset, .cause = Cause{cause, {}}};
}

bool signature_at(Bytes file, std::uint64_t offset) {
  if (offset > file.size() || file.size() - offset < kSignature.size()) return false;
  for (std::size_t i = 0; i < kSignature.size(); ++i)
    if (file[offset + i] != std::byte{kSignature[i]}) return false;
  return true;
}

std::optional<std::uint64_t> signature_offset(Bytes file) {
  if (signature_at(file, 0)) return 0;
  for (std::uint64_t offset = kUserBlockMin; offset < file.size(); offset *= 2)
    if (signature_at(file, offset)) return offset;
  return std::nullopt;
}

Result<void> check_widths(std::uint64_t offset, std::uint8_t offsets, std::uint8_t lengths) {
  for (const std::uint8_t width : {offsets, lengths}) {
    if (width == 8) continue;
    if (width != 2 && width != 4)
      return damaged(offset, "impossible width of offsets or lengths; found " +
                                 std::to_string(width) + ", expected 2, 4 or 8");
    return Error{.kind = ErrorKind::kUnsupported,
                 .message = "width of offsets or lengths is not read; found " +
                            std::to_string(width) + ", expected 8",
                 .offset = offset};
  }
  return {};
}

Result<void> check_base(std::uint64_t offset, std::uint64_t base) {
  if (base == 0) return {};
  return Error{.kind = ErrorKind::kUnsupported,
               .message = "files with a base address are not read; found " + std::to_string(base) +
                          ", expected 0",
               .offset = offset};
}

Result<Hdf5Superblock> parse_old(ByteReader& reader, std::uint8_t version) {
  CKPTVERIFY_TRY_VOID(reader.take(4));  // versions of other structures, reserved
  const std::uint64_t widths = reader.offset();
  CKPTVERIFY_TRY(const std::uint8_t offsets, reader.u8());
  CKPTVERIFY_TRY(const std::uint8_t lengths, reader.u8());
  CKPTVERIFY_TRY_VOID(check_widths(widths, offsets, lengths));
  CKPTVERIFY_TRY_VOID(reader.take(version == 0 ? 9 : 13));  // reserved, k's, consistency flags
  const std::uint64_t base_offset = reader.offset();
  CKPTVERIFY_TRY(const std::uint64_t base, reader.u64());
  CKPTVERIFY_TRY_VOID(check_base(base_offset, base));
  CKPTVERIFY_TRY_VOID(reader.u64());  // free space
  CKPTVERIFY_TRY(const std::uint64_t end_of_file, reader.u64());
  return Hdf5Superblock{.version = version, .end_of_file = end_of_file};
}

Result<Hdf5Superblock> parse_new(Bytes file, ByteReader& reader, std::uint8_t version) {
  CKPTVERIFY_TRY(const std::uint8_t offsets, reader.u8());
  CKPTVERIFY_TRY(const std::uint8_t lengths, reader.u8());
  CKPTVERIFY_TRY_VOID(check_widths(9, offsets, lengths));
  CKPTVERIFY_TRY(const std::uint8_t flags, reader.u8());
  CKPTVERIFY_TRY(const std::uint64_t base, reader.u64());
  CKPTVERIFY_TRY_VOID(reader.u64());  // extension
  CKPTVERIFY_TRY(const std::uint64_t end_of_file, reader.u64());
  CKPTVERIFY_TRY_VOID(reader.u64());  // root
  const std::uint64_t checksum_offset = reader.offset();
  CKPTVERIFY_TRY(const std::uint32_t expected, reader.u32());
  CKPTVERIFY_TRY(const Bytes covered, slice(file, 0, checksum_offset));
  if (const std::uint32_t found = hdf5_lookup3(covered); found != expected)
    return damaged(checksum_offset, "checksum of the superblock is wrong; found " +
                                        std::to_string(found) + ", expected " +
                                        std::to_string(expected));
  CKPTVERIFY_TRY_VOID(check_base(12, base));
  return Hdf5Superblock{.version = version,
                        .end_of_file = end_of_file,
                        .open_for_writing = (flags & (kFlagWrite | kFlagSwmrWrite)) != 0};
}

Result<Hdf5Superblock> parse_at_start(Bytes file) {
  ByteReader reader(file);
  CKPTVERIFY_TRY_VOID(reader.seek(kVersionOffset));
  CKPTVERIFY_TRY(const std::uint8_t version, reader.u8());
  if (version > 3)
    return damaged(kVersionOffset, "impossible version of the superblock; found " +
                                       std::to_string(version) + ", expected 0 to 3");
  return version < 2 ? parse_old(reader, version) : parse_new(file, reader, version);
}

std::uint32_t rotate(std::uint32_t value, unsigned bits) {
  return value << bits | value >> (32 - bits);
}

}  // namespace

bool has_hdf5_signature(Bytes file) {
  return signature_offset(file).has_value();
}

Result<Hdf5Superblock> parse_hdf5_superblock(Bytes file) {
  const auto offset = signature_offset(file);
  if (!offset) return damaged(0, "no HDF5 signature");
  if (*offset != 0)
    return Error{.kind = ErrorKind::kUnsupported,
                 .message = "files with a user block are not read; found the signature at byte " +
                            std::to_string(*offset) + ", expected 0",
                 .offset = 0};
  auto superblock = parse_at_start(file);
  if (!superblock) {
    Error error = std::move(superblock).error();
    // A read that does not fit: the file ends inside its superblock.
    if (error.kind == ErrorKind::kMalformed && !error.cause)
      error.cause = Cause{CauseKind::kTrunc, {}};
    return error;
  }
  if (superblock->end_of_file > file.size())
    return damaged(file.size(),
                   "file ends before its superblock says; found " + std::to_string(file.size()) +
                       " bytes, expected " + std::to_string(superblock->end_of_file),
                   CauseKind::kTrunc);
  return superblock;
}

std::uint32_t hdf5_lookup3(Bytes bytes) {
  const auto start = 0xdeadbeefU + static_cast<std::uint32_t>(bytes.size());
  std::uint32_t a = start, b = start, c = start;
  const auto word = [&bytes](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4 && at + i < bytes.size(); ++i)
      value |= std::to_integer<std::uint32_t>(bytes[at + i]) << (8 * i);
    return value;
  };
  std::size_t position = 0;
  for (; bytes.size() - position > 12; position += 12) {
    a += word(position), b += word(position + 4), c += word(position + 8);
    a -= c, a ^= rotate(c, 4), c += b;
    b -= a, b ^= rotate(a, 6), a += c;
    c -= b, c ^= rotate(b, 8), b += a;
    a -= c, a ^= rotate(c, 16), c += b;
    b -= a, b ^= rotate(a, 19), a += c;
    c -= b, c ^= rotate(b, 4), b += a;
  }
  if (position == bytes.size()) return c;
  a += word(position), b += word(position + 4), c += word(position + 8);
  c ^= b, c -= rotate(b, 14);
  a ^= c, a -= rotate(c, 11);
  b ^= a, b -= rotate(a, 25);
  c ^= b, c -= rotate(b, 16);
  a ^= c, a -= rotate(c, 4);
  b ^= a, b -= rotate(a, 14);
  c ^= b, c -= rotate(b, 24);
  return c;
}

}  // namespace ckptverify
