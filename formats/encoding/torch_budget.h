// What the walk over a pickle may take: a shared object is walked once a path, so that a few bytes
// of pickle can ask for any number of entries, copies of a text or looks at a dictionary. Visits,
// work and memory all grow with what is really there.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "ckptverify/checkpoint.h"
#include "ckptverify/result.h"
#include "formats/encoding/pickle.h"

namespace ckptverify {

class TorchBudget {
 public:
  explicit TorchBudget(const PickleTree& tree);

  // Errors, all kUnsupported: more than an honest pickle of this size asks for.

  /// One visit, and what it takes to tell what the node is: a call's arguments are read for it.
  Result<void> visit(const PickleNode& node);
  Result<void> read_text(std::size_t size);
  Result<void> read_keys(std::span<const PicklePair> pairs);
  /// An entry.
  Result<void> keep(const std::string& path, const Node& node);
  /// A sentence about what stands at a path.
  Result<void> keep_note(const std::string& path);

 private:
  Result<void> spend_work(std::size_t work);
  Result<void> spend_bytes(std::size_t bytes);

  std::size_t visits_;
  std::size_t work_;   // looking at what a node holds, and at its text
  std::size_t bytes_;  // of what is found
};

}  // namespace ckptverify
