// Source: deepspeed/utils/zero_to_fp32.py.
#include "formats/container/deepspeed_partitions.h"

#include <algorithm>

namespace ckptverify {
namespace {

Error uneven(const std::string& what, std::uint64_t found, std::uint64_t expected) {
  return Error{.message = what + "; found " + std::to_string(found) + " elements, expected " +
                          std::to_string(expected),
               .cause = Cause{CauseKind::kShardMissing, {}}};
}

std::uint64_t size_of(const Tensor& flat) {
  return flat.shape.empty() ? 0 : flat.shape[0];
}

/// Ranges of one vector after the other become the elements of a parameter from the first one on.
class Joined {
 public:
  Joined(const DeepspeedParameter& parameter, DType dtype) {
    tensor_.dtype = dtype;
    tensor_.shape = parameter.shape;
    tensor_.flattened = true;
  }
  void append(const Tensor& flat, std::uint64_t begin, std::uint64_t count) {
    if (count == 0) return;
    const Piece& whole = flat.pieces[0];
    tensor_.byte_order = flat.byte_order;
    tensor_.pieces.push_back({.offset = {filled_},
                              .shape = {count},
                              .strides = {1},
                              .first_element = whole.first_element + begin,
                              .run = whole.run});
    filled_ += count;
  }
  std::uint64_t filled() const { return filled_; }
  /// One piece is a tensor like any other.
  Tensor take() && {
    if (tensor_.pieces.size() == 1) {
      Piece& only = tensor_.pieces[0];
      tensor_.flattened = false;
      only.offset.assign(tensor_.shape.size(), 0);
      only.shape = tensor_.shape;
      only.strides = contiguous_strides(tensor_.shape);
    }
    return std::move(tensor_);
  }

 private:
  Tensor tensor_{.shape = {}, .pieces = {}};
  std::uint64_t filled_ = 0;
};

std::uint64_t rounded_up(std::uint64_t size, std::uint64_t multiple) {
  return size / multiple * multiple + (size % multiple == 0 ? 0 : multiple);
}

/// One group of stage 1 or 2.
Result<void> join_group(const FlatGroups& flats, std::size_t group,
                        const std::vector<DeepspeedParameter>& parameters, NamedTensors& out) {
  std::uint64_t available = 0;
  std::uint64_t needed = 0;
  for (const auto& rank : flats) {
    CKPTVERIFY_TRY(available, checked_add(available, size_of(rank[group])));
  }
  for (const DeepspeedParameter& parameter : parameters) {
    CKPTVERIFY_TRY(needed, checked_add(needed, parameter.element_count));
  }
  // The writer pads to multiples of twice the ranks, in two places.
  const std::uint64_t multiple = 2 * flats.size();
  if (available < needed || rounded_up(available, multiple) != rounded_up(needed, multiple))
    return uneven("group " + std::to_string(group) +
                      ": the ranks' partitions have another size "
                      "than its parameters",
                  available, needed);
  std::size_t rank = 0;
  std::uint64_t begin = 0;
  for (const DeepspeedParameter& parameter : parameters) {
    Joined joined(parameter, flats[0][group].dtype);
    while (joined.filled() < parameter.element_count) {
      const std::uint64_t left = size_of(flats[rank][group]) - begin;
      const std::uint64_t count = std::min(left, parameter.element_count - joined.filled());
      joined.append(flats[rank][group], begin, count);
      begin += count;
      if (count == left) {
        ++rank;
        begin = 0;
      }
    }
    out.emplace_back(parameter.name, std::move(joined).take());
  }
  return {};
}

/// A rank's groups as one vector, read in order.
class RankCursor {
 public:
  explicit RankCursor(const std::vector<Tensor>& groups) : groups_(groups) {}
  /// Moves over `count` elements, the first `wanted` of which are appended.
  Result<void> advance(std::uint64_t count, std::uint64_t wanted, Joined& joined) {
    while (count > 0) {
      if (group_ == groups_.size())
        return uneven("a rank's partition ends early", passed_, passed_ + count);
      const std::uint64_t step = std::min(count, size_of(groups_[group_]) - begin_);
      joined.append(groups_[group_], begin_, std::min(step, wanted));
      wanted -= std::min(step, wanted);
      count -= step;
      begin_ += step;
      passed_ += step;
      if (begin_ == size_of(groups_[group_])) {
        ++group_;
        begin_ = 0;
      }
    }
    return {};
  }
  Result<void> check_end() const {
    std::uint64_t all = passed_ - begin_;
    for (std::size_t i = group_; i < groups_.size(); ++i) all += size_of(groups_[i]);
    if (all == passed_) return {};
    return uneven("a rank's partition has more than its parameters", all, passed_);
  }

 private:
  const std::vector<Tensor>& groups_;
  std::size_t group_ = 0;
  std::uint64_t begin_ = 0;
  std::uint64_t passed_ = 0;
};

Result<NamedTensors> join_stage_3(const FlatGroups& flats, const DeepspeedLayout& layout) {
  const std::uint64_t world = flats.size();
  std::vector<RankCursor> cursors(flats.begin(), flats.end());
  NamedTensors out;
  for (const auto& group : layout.groups) {
    for (const DeepspeedParameter& parameter : group) {
      const std::uint64_t all = parameter.element_count;
      const std::uint64_t part = all / world + (all % world == 0 ? 0 : 1);
      Joined joined(parameter, flats[0].empty() ? DType::kFloat32 : flats[0][0].dtype);
      for (RankCursor& cursor : cursors) {
        const std::uint64_t wanted = std::min(part, all - joined.filled());
        if (auto moved = cursor.advance(part, wanted, joined); !moved) {
          Error error = std::move(moved).error();
          error.message = "parameter '" + parameter.name + "': " + error.message;
          return error;
        }
      }
      out.emplace_back(parameter.name, std::move(joined).take());
    }
  }
  for (const RankCursor& cursor : cursors) CKPTVERIFY_TRY_VOID(cursor.check_end());
  return out;
}

}  // namespace

bool is_flat(const Tensor& tensor) {
  return tensor.shape.size() == 1 && tensor.pieces.size() == 1 && !tensor.absent &&
         !tensor.conjugate && !tensor.negative && !tensor.flattened &&
         tensor.pieces[0].run.decode == nullptr && tensor.pieces[0].shape == tensor.shape &&
         (tensor.shape[0] < 2 || tensor.pieces[0].strides[0] == 1);
}

Result<NamedTensors> join_partitions(ZeroStage stage, const FlatGroups& flats,
                                     const DeepspeedLayout& layout) {
  for (const auto& rank : flats) {
    if (stage == ZeroStage::kOptimizer && rank.size() != layout.groups.size())
      return Error{.message = "a rank has another count of groups; found " +
                              std::to_string(rank.size()) + ", expected " +
                              std::to_string(layout.groups.size()),
                   .cause = Cause{CauseKind::kShardMissing, {}}};
    for (const Tensor& flat : rank) {
      if (!is_flat(flat) || flat.dtype != flats[0][0].dtype)
        return Error{
            .kind = ErrorKind::kUnsupported,
            .message = "a partition is no plain vector of the same elements as the others"};
    }
  }
  if (flats.empty()) return NamedTensors();
  if (stage == ZeroStage::kParameters) return join_stage_3(flats, layout);
  NamedTensors out;
  for (std::size_t group = 0; group < layout.groups.size(); ++group)
    CKPTVERIFY_TRY_VOID(join_group(flats, group, layout.groups[group], out));
  return out;
}

Result<Tensor> join_fragments(const DeepspeedParameter& parameter,
                              const std::vector<Tensor>& fragments) {
  Joined joined(parameter, fragments.empty() ? DType::kFloat32 : fragments[0].dtype);
  for (const Tensor& fragment : fragments) {
    if (!is_flat(fragment) || fragment.dtype != fragments[0].dtype)
      return Error{.kind = ErrorKind::kUnsupported,
                   .message = "a fragment is no plain vector of the same elements as the others"};
    joined.append(fragment, 0,
                  std::min(size_of(fragment), parameter.element_count - joined.filled()));
  }
  if (joined.filled() != parameter.element_count)
    return uneven("parameter '" + parameter.name + "': the ranks' fragments are too small",
                  joined.filled(), parameter.element_count);
  return std::move(joined).take();
}

}  // namespace ckptverify
