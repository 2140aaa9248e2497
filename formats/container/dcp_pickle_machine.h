// The machine that runs a pickle into packed cells: a stack and a memo, and the opcodes in
// families. Private to dcp_pickle.cc and dcp_pickle_opcodes.cc.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "formats/container/dcp_pickle.h"

namespace ckptverify {

inline constexpr unsigned kCellKindBits = 4;
inline constexpr unsigned kCellTextSizeBits = 24;  // a name of 16 MiB is none
inline constexpr std::uint64_t kCellTextSizeMax = (1ULL << kCellTextSizeBits) - 1;
inline constexpr std::uint64_t kCellTextOffsetMax = 1ULL
                                                    << (64 - kCellKindBits - kCellTextSizeBits);
inline constexpr unsigned kCellProtocolMax = 5;
// Cells are counted in 32 bits; 32 GiB of them would be the metadata of a hundred million chunks.
inline constexpr std::uint64_t kCellsMax = std::numeric_limits<std::uint32_t>::max() / 2;
// No class of the metadata has as many attributes; a shared dictionary must not be searched for
// each of a million objects.
inline constexpr std::size_t kCellAttributesMax = 64;
inline constexpr std::int64_t kCellIntegerMax = (1LL << 58) - 1;

inline std::uint64_t packed_cell(Cell cell) {
  return cell.payload << kCellKindBits | static_cast<std::uint64_t>(cell.kind);
}

inline Cell unpacked_cell(std::uint64_t bits) {
  return {static_cast<CellKind>(bits & ((1U << kCellKindBits) - 1)), bits >> kCellKindBits};
}

inline bool has_cells(Cell cell) {
  return cell.kind >= CellKind::kTuple;
}

inline Cell integer_cell(std::int64_t value) {
  if (value > kCellIntegerMax || value < -kCellIntegerMax) return {CellKind::kOther};
  const auto zigzag = static_cast<std::uint64_t>(value < 0 ? -2 * value - 1 : 2 * value);
  return {CellKind::kInteger, zigzag};
}

class CellMachine {
 public:
  explicit CellMachine(Bytes bytes) : reader_(bytes) { pickle_.bytes_ = bytes; }

  Result<CellPickle> run();

 private:
  Error fault(const std::string& message, CauseKind cause = CauseKind::kBitrot) const {
    return {.message = "pickle " + message, .offset = at_, .cause = Cause{cause, {}}};
  }
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  void push(Cell cell) { stack_.push_back(packed_cell(cell)); }
  Result<Cell> pop();
  Result<Cell> top() const;
  Result<std::size_t> mark();
  Result<void> make(CellKind kind, std::size_t begin);
  Result<void> append(Cell target, std::size_t begin);
  Result<void> text(std::uint64_t size);
  Result<void> skip(std::uint64_t size);
  Result<void> reduce(bool object);
  Result<void> build();
  Result<void> add(std::uint8_t opcode);
  Result<void> put(std::uint64_t index);
  Result<void> get(std::uint64_t index);
  Result<void> global();
  Result<bool> step_scalar(std::uint8_t opcode);
  Result<bool> step_memo(std::uint8_t opcode);
  Result<bool> step_object(std::uint8_t opcode);
  Result<bool> step_frame(std::uint8_t opcode);

  ByteReader reader_;
  CellPickle pickle_;
  std::vector<std::uint64_t> stack_;
  std::vector<std::size_t> marks_;
  std::vector<std::uint64_t> memo_;
  std::uint64_t at_ = 0;
};

}  // namespace ckptverify
