// One segment of one file, walked in blocks that stay in a core's cache while every digest that
// wants them is fed.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "ckptverify/checkpoint.h"
#include "ckptverify/fingerprint.h"
#include "src/content.h"

namespace ckptverify {

/// A leaf of a tensor that lies in the file as it is read; offsets are in the file.
struct LeafRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::size_t tensor = 0;
  std::size_t leaf = 0;
};

/// What a piecewise checksum covers; offsets are in the file.
struct CheckedRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::size_t checksum = 0;
};

/// What the bytes of one file are wanted for. Both lists are sorted by their begin.
struct FilePlan {
  Bytes bytes;
  std::vector<LeafRange> leaves = {};
  std::vector<CheckedRange> checks = {};
};

/// A piecewise checksum over the part of its range that lies in one segment.
struct PartialSum {
  std::size_t checksum = 0;
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
  std::uint64_t sum = 0;
};

struct WalkRequest {
  std::span<const Tensor* const> tensors;
  std::span<const StoredChecksum> checksums;
  bool content = false;
  bool file_leaves = false;
  std::atomic<std::uint64_t>* bytes_read = nullptr;
};

/// Where a walk leaves what it finds; the lists of leaves have room for all of them.
struct WalkOutput {
  std::vector<std::vector<Digest>>& leaves;
  std::vector<Digest>& file_leaves;
  std::vector<PartialSum> sums = {};
  std::vector<std::pair<std::size_t, TensorContent>> contents = {};  // by tensor
};

/// `begin` is a multiple of kLeafSize; so is `end`, unless it is the end of the file.
struct Segment {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// A leaf belongs to the segment that it begins in and is read beyond the segment's end.
void walk_segment(const FilePlan& file, const Segment& segment, const WalkRequest& request,
                  WalkOutput& output);

}  // namespace ckptverify
