// What lies where in an HDF5 file, asked of the HDF5 library in a child process: the library can
// crash, hang or take all memory on a damaged file, so it runs as `ckptverify-hdf5` with limits and
// a deadline, is killed and reaped whatever happens, and its death is an error. Every number that
// it prints is checked here; nothing that it says is believed.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "ckptverify/result.h"
#include "ckptverify/source.h"
#include "ckptverify/tensor.h"
#include "ckptverify/value.h"

namespace ckptverify {

enum class Hdf5Class {
  kSigned,
  kUnsigned,
  kFloat,
  kComplex,  // two floats of half the size
  kBool,     // h5py's enumeration
  kOpaque,
  kString,
  kOther,
};

struct Hdf5Type {
  Hdf5Class kind = Hdf5Class::kOther;
  std::string name;        // of the class, for messages
  std::uint64_t size = 0;  // bytes of an element
  ByteOrder order = ByteOrder::kLittle;
  std::uint64_t exponent = 0;  // bits, of a float
  std::uint64_t mantissa = 0;
  std::uint64_t bias = 0;
};

enum class Hdf5Layout { kContiguous, kCompact, kChunked, kExternal, kVirtual, kDamaged };

/// Bytes of the file, proven to be inside it.
struct Hdf5Extent {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

struct Hdf5Chunk {
  std::vector<std::uint64_t> offset;  // elements, of its first one
  Hdf5Extent stored;
  std::uint32_t filter_mask = 0;  // bit i: filter i was not applied
};

/// An attribute's values; none where it was not read.
struct Hdf5Attribute {
  std::string name;
  std::optional<std::vector<Value>> values;
  bool scalar = false;
};

struct Hdf5Dataset {
  std::string path;           // groups and name joined by '.'
  std::uint64_t address = 0;  // equal for two hard links to one dataset
  Hdf5Type type;
  std::vector<std::uint64_t> shape;
  Hdf5Layout layout = Hdf5Layout::kContiguous;
  std::optional<Hdf5Extent> contiguous;  // none: never written
  std::optional<std::vector<std::byte>> compact;
  std::vector<std::byte> fill;  // one element; empty where it is not known
  std::vector<std::uint64_t> chunk_shape;
  std::vector<std::uint32_t> filters;  // ids, in the order of writing
  std::uint64_t shuffle_size = 0;
  std::vector<Hdf5Chunk> chunks;
  std::vector<Hdf5Attribute> attributes;
  std::optional<std::string> text;  // of a scalar string
};

struct Hdf5Group {
  std::string path;  // empty for the root
  std::vector<Hdf5Attribute> attributes;
};

enum class Hdf5NoteKind { kLink, kUnread, kDamaged };

/// Something that was named and not entered.
struct Hdf5Note {
  Hdf5NoteKind kind = Hdf5NoteKind::kUnread;
  std::string path;
  std::string what;
};

struct Hdf5Listing {
  std::vector<Hdf5Dataset> datasets;
  std::vector<Hdf5Group> groups;
  std::vector<Hdf5Note> notes;
};

struct Hdf5ProbeOptions {
  std::filesystem::path executable = {};  // empty: ckptverify-hdf5 beside this process's own
  std::chrono::milliseconds deadline = std::chrono::minutes(10);
};

/// Malformed where the library refuses the file or dies of it; unreadable where the child cannot be
/// started or does not come to an end.
Result<Hdf5Listing> probe_hdf5(const Source& source, const Hdf5ProbeOptions& options = {});

/// The lines of a child, parsed for a file of that many bytes.
Result<Hdf5Listing> parse_hdf5_listing(std::string_view lines, std::uint64_t file_size);

}  // namespace ckptverify
