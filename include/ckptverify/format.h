// How a checkpoint format plugs in: a name, a sniff that shares code with the header parse, and a
// read. The table itself is formats/formats.cc; everything else is handed one.
#pragma once

#include <span>
#include <string_view>

#include "ckptverify/checkpoint.h"
#include "ckptverify/result.h"
#include "ckptverify/source.h"

namespace ckptverify {

class FormatTable;

struct Format {
  std::string_view name;       // "torch-zip"
  std::string_view title;      // for people
  std::string_view files;      // what it looks like on disk
  std::string_view checksums;  // what integrity data it carries, for people
  bool (*sniff)(const Source& source);
  /// A malformed checkpoint is an error or, where reading can go on, a finding in the result.
  Result<Checkpoint> (*read)(const Source& source, const FormatTable& table);
};

/// How far a reader goes.
enum class Depth {
  kWhole,    // every claim proven, every tensor's bytes found
  kListing,  // paths, types, shapes, values: a reader may leave out the pieces of tensors,
             // checksums and coverage where finding them means opening many files
};

/// Formats in the order in which they are asked. Directory formats read their members through it.
class FormatTable {
 public:
  explicit constexpr FormatTable(std::span<const Format> rows, Depth depth = Depth::kWhole)
      : rows_(rows), depth_(depth) {}
  Depth depth() const { return depth_; }
  FormatTable at(Depth depth) const { return FormatTable(rows_, depth); }
  std::span<const Format> rows() const { return rows_; }
  const Format* recognise(const Source& source) const;
  /// Reads by the first format that recognises the source; errors name the source.
  Result<Checkpoint> read(const Source& source) const;

 private:
  std::span<const Format> rows_;
  Depth depth_;
};

}  // namespace ckptverify
