// The walk asks in each turn where the next wanted byte is, takes a block from there, and hands
// each digest its share. Leaves and checksums come in the order of their begins.
#include "src/segment_walk.h"

#include <algorithm>
#include <limits>

#include "src/leaves.h"

namespace ckptverify {
namespace {

// Half of the second-level cache of current cores, so that a block is still there for the last of
// its digests; long enough that the turns between digests cost nothing.
constexpr std::uint64_t kBlockSize = std::uint64_t{256} << 10;
// The largest element: numbers are looked at in whole ones.
constexpr std::uint64_t kElementSizeMax = 16;
constexpr std::uint64_t kNowhere = std::numeric_limits<std::uint64_t>::max();

/// A leaf of which the walk has reached the begin and not the end.
struct OpenLeaf {
  const LeafRange* range = nullptr;
  ByteHasher hasher = {};
  std::uint64_t looked_at = 0;  // bytes of the leaf whose numbers were looked at
  TensorContent content = {};
};

struct OpenCheck {
  CheckedRange range;  // cut to the segment
  std::uint64_t sum = 0;
};

class Walk {
 public:
  Walk(const FilePlan& file, const Segment& segment, const WalkRequest& request, WalkOutput& output)
      : file_(file), segment_(segment), request_(request), output_(output) {
    const auto begins_before = [](const LeafRange& leaf, std::uint64_t at) {
      return leaf.begin < at;
    };
    const auto& leaves = file.leaves;
    next_leaf_ = std::lower_bound(leaves.begin(), leaves.end(), segment.begin, begins_before);
    leaves_end_ = std::lower_bound(next_leaf_, leaves.end(), segment.end, begins_before);
    // A damaged file may have ranges in ranges, so the ends have no order.
    for (const CheckedRange& check : file.checks) {
      if (check.begin >= segment.end) break;
      if (check.end <= segment.begin) continue;
      checks_.push_back({.range = {.begin = std::max(check.begin, segment.begin),
                                   .end = std::min(check.end, segment.end),
                                   .checksum = check.checksum}});
    }
  }

  void run() {
    for (std::uint64_t at = wanted_from(segment_.begin); at != kNowhere;) {
      std::uint64_t end = std::min(at + kBlockSize, std::uint64_t{file_.bytes.size()});
      if (at < segment_.end) end = std::min(end, segment_.end);
      feed_leaves(at, end);
      feed_checks(at, end);
      if (at < segment_.end && request_.file_leaves) feed_file(at, end);
      if (request_.bytes_read != nullptr) *request_.bytes_read += end - at;
      at = wanted_from(end);
    }
    for (const auto& [range, sum] : checks_) {
      output_.sums.push_back({range.checksum, range.begin, range.end - range.begin, sum});
    }
  }

 private:
  Bytes between(std::uint64_t begin, std::uint64_t end) const {
    return file_.bytes.subspan(begin, end - begin);
  }

  /// The first byte from `at` on that somebody wants.
  std::uint64_t wanted_from(std::uint64_t at) {
    if (!open_.empty() || (at < segment_.end && request_.file_leaves)) return at;
    while (first_check_ < checks_.size() && checks_[first_check_].range.end <= at) ++first_check_;
    std::uint64_t wanted = next_leaf_ == leaves_end_ ? kNowhere : next_leaf_->begin;
    // Of those that are left, the first begins first; any may have ended.
    for (std::size_t i = first_check_; i < checks_.size(); ++i) {
      if (checks_[i].range.end <= at) continue;
      wanted = std::min(wanted, std::max(at, checks_[i].range.begin));
      break;
    }
    return wanted;
  }

  void feed_leaves(std::uint64_t begin, std::uint64_t end) {
    for (OpenLeaf& leaf : open_) feed(leaf, begin, end);
    for (; next_leaf_ != leaves_end_ && next_leaf_->begin < end; ++next_leaf_) {
      if (next_leaf_->end <= end) {
        take_whole(*next_leaf_);
      } else {
        feed(open_.emplace_back(OpenLeaf{.range = &*next_leaf_}), next_leaf_->begin, end);
      }
    }
    std::erase_if(open_, [end](const OpenLeaf& leaf) { return leaf.range->end <= end; });
  }

  void feed(OpenLeaf& leaf, std::uint64_t begin, std::uint64_t end) {
    const LeafRange& range = *leaf.range;
    const std::uint64_t until = std::min(end, range.end);
    leaf.hasher.update(between(begin, until));
    if (request_.content) {
      std::uint64_t looked_at = until - range.begin;
      if (until < range.end) looked_at -= looked_at % kElementSizeMax;
      add(leaf.content, look(range, leaf.looked_at, looked_at));
      leaf.looked_at = looked_at;
    }
    if (until == range.end) leave(range, leaf.hasher.finish(), leaf.content);
  }

  void take_whole(const LeafRange& range) {
    const Digest digest = hash_bytes(between(range.begin, range.end));
    TensorContent content;
    if (request_.content) content = look(range, 0, range.end - range.begin);
    leave(range, digest, content);
  }

  /// The numbers of a part of a leaf.
  TensorContent look(const LeafRange& range, std::uint64_t from, std::uint64_t to) const {
    const DType dtype = request_.tensors[range.tensor]->dtype;
    const std::uint64_t first = (range.leaf * kLeafSize + from) / dtype_size(dtype);
    return content_of(dtype, between(range.begin + from, range.begin + to), first);
  }

  void leave(const LeafRange& range, const Digest& digest, const TensorContent& content) {
    output_.leaves[range.tensor][range.leaf] = digest;
    if (!request_.content) return;
    if (!output_.contents.empty() && output_.contents.back().first == range.tensor) {
      add(output_.contents.back().second, content);
    } else {
      output_.contents.emplace_back(range.tensor, content);
    }
  }

  void feed_checks(std::uint64_t begin, std::uint64_t end) {
    for (std::size_t i = first_check_; i < checks_.size(); ++i) {
      auto& [range, sum] = checks_[i];
      if (range.begin >= end) break;
      const std::uint64_t from = std::max(begin, range.begin);
      const std::uint64_t until = std::min(end, range.end);
      if (from >= until) continue;
      sum = request_.checksums[range.checksum].piecewise->extend(sum, between(from, until));
    }
  }

  /// The segment begins where a leaf of the file does.
  void feed_file(std::uint64_t begin, std::uint64_t end) {
    while (begin < end) {
      const std::uint64_t leaf = begin / kLeafSize;
      const std::uint64_t leaf_end =
          std::min((leaf + 1) * kLeafSize, std::uint64_t{file_.bytes.size()});
      const std::uint64_t until = std::min(end, leaf_end);
      file_hasher_.update(between(begin, until));
      if (until == leaf_end) {
        output_.file_leaves[leaf] = file_hasher_.finish();
        file_hasher_ = ByteHasher();
      }
      begin = until;
    }
  }

  const FilePlan& file_;
  const Segment& segment_;
  const WalkRequest& request_;
  WalkOutput& output_;
  std::vector<LeafRange>::const_iterator next_leaf_;
  std::vector<LeafRange>::const_iterator leaves_end_;
  std::vector<OpenLeaf> open_;
  std::vector<OpenCheck> checks_;
  std::size_t first_check_ = 0;
  ByteHasher file_hasher_;
};

}  // namespace

void walk_segment(const FilePlan& file, const Segment& segment, const WalkRequest& request,
                  WalkOutput& output) {
  Walk(file, segment, request, output).run();
}

}  // namespace ckptverify
