// Volumes are summed without overflow; overlaps are sought along the dimension with the most cuts,
// where few boxes are neighbours.
#include "formats/container/dcp_tiling.h"

#include <algorithm>

#include "ckptverify/bytes.h"

namespace ckptverify {
namespace {

// Pairs of boxes compared for one tensor: a second at most. A grid of 100,000 boxes in one
// dimension needs 100,000, one of 300 by 300 needs 13 million.
constexpr std::uint64_t kPairsMax = 100'000'000;

bool overlap(const Box& a, const Box& b) {
  for (std::size_t d = 0; d < a.sizes.size(); ++d) {
    if (a.offsets[d] + a.sizes[d] <= b.offsets[d] || b.offsets[d] + b.sizes[d] <= a.offsets[d])
      return false;
  }
  return true;
}

bool is_empty(const Box& box) {
  return std::find(box.sizes.begin(), box.sizes.end(), 0U) != box.sizes.end();
}

bool is_inside(const Box& box, std::span<const std::uint64_t> shape) {
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (box.offsets[d] > shape[d] || box.sizes[d] > shape[d] - box.offsets[d]) return false;
  }
  return true;
}

std::size_t dimension_of_most_cuts(std::size_t rank, const std::vector<const Box*>& boxes) {
  std::size_t best = 0;
  std::size_t most = 0;
  for (std::size_t d = 0; d < rank; ++d) {
    std::vector<std::uint64_t> cuts;
    for (const Box* box : boxes) cuts.push_back(box->offsets[d]);
    std::sort(cuts.begin(), cuts.end());
    const auto end = std::unique(cuts.begin(), cuts.end());
    const auto count = static_cast<std::size_t>(end - cuts.begin());
    if (count > most) {
      most = count;
      best = d;
    }
  }
  return best;
}

std::string box_text(const Box& box) {
  return dimensions_text(box.sizes) + " at " + dimensions_text(box.offsets);
}

std::optional<TilingFault> overlap_fault(std::size_t rank, std::vector<const Box*> boxes) {
  if (rank == 0) {
    if (boxes.size() < 2) return std::nullopt;
    return TilingFault{.message = "chunks overlap; found " + std::to_string(boxes.size()) +
                                  " chunks of a scalar, expected 1"};
  }
  const std::size_t d = dimension_of_most_cuts(rank, boxes);
  std::sort(boxes.begin(), boxes.end(),
            [d](const Box* a, const Box* b) { return a->offsets[d] < b->offsets[d]; });
  std::vector<const Box*> active;
  std::uint64_t pairs = 0;
  for (const Box* box : boxes) {
    std::erase_if(active, [&](const Box* other) {
      return other->offsets[d] + other->sizes[d] <= box->offsets[d];
    });
    pairs += active.size();
    if (pairs > kPairsMax)
      return TilingFault{
          .message = "too many chunks to compare; found " + std::to_string(boxes.size()),
          .undecided = true};
    for (const Box* other : active) {
      if (!overlap(*box, *other)) continue;
      return TilingFault{.message = "chunks overlap; found " + box_text(*box) + ", and " +
                                    box_text(*other) + " before it"};
    }
    active.push_back(box);
  }
  return std::nullopt;
}

}  // namespace

std::string dimensions_text(std::span<const std::uint64_t> dimensions) {
  std::string text;
  for (const std::uint64_t dimension : dimensions)
    text += (text.empty() ? "" : ", ") + std::to_string(dimension);
  return "[" + text + "]";
}

std::optional<TilingFault> tiling_fault(std::span<const std::uint64_t> shape,
                                        const std::vector<Box>& boxes) {
  const auto whole = checked_product(shape);
  if (!whole)
    return TilingFault{.message = "shape does not fit 64 bits; found " + dimensions_text(shape)};
  std::vector<const Box*> filled;
  std::uint64_t elements = 0;
  for (const Box& box : boxes) {
    if (!is_inside(box, shape))
      return TilingFault{.message = "a chunk lies outside; found " + box_text(box) +
                                    ", expected it inside " + dimensions_text(shape)};
    if (is_empty(box)) continue;
    filled.push_back(&box);
    // Inside of the whole, so its product fits; a sum that does not is an overlap.
    std::uint64_t count = 1;
    for (const std::uint64_t size : box.sizes) count *= size;
    elements = elements > ~count ? ~std::uint64_t{0} : elements + count;
  }
  if (auto fault = overlap_fault(shape.size(), std::move(filled))) return fault;
  if (elements >= *whole) return std::nullopt;
  return TilingFault{.cause = CauseKind::kShardMissing,
                     .message = "chunks leave a hole; found " + std::to_string(elements) +
                                " elements, expected " + std::to_string(*whole) + " of shape " +
                                dimensions_text(shape)};
}

}  // namespace ckptverify
