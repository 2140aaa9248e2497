// A plain pickle: no container at all.
//
//   | 0x80 protocol | opcodes ... | '.' |      protocols 2 to 5
//   | opcodes ...                 | '.' |      protocols 0 and 1
#include "formats/pickle_file.h"

#include <utility>

#include "formats/container/torch_file.h"
#include "formats/encoding/torch_objects.h"

namespace ckptverify {
namespace {

constexpr std::byte kProtoOpcode{0x80};
constexpr std::byte kProtocolMax{5};
// A pickle without a header is told from text only by reading it; larger ones than this are not of
// that age.
constexpr std::uint64_t kHeaderlessBytesMax = 64U << 20;

bool has_header(Bytes bytes) {
  return bytes.size() >= 2 && bytes[0] == kProtoOpcode && bytes[1] >= std::byte{2} &&
         bytes[1] <= kProtocolMax;
}

Result<Run> no_storages(const StorageReference& storage) {
  return Error{
      .message = "a storage outside of the pickle, which is a whole file; found key " + storage.key,
      .offset = storage.offset,
      .cause = Cause{CauseKind::kPickleDep}};
}

}  // namespace

bool sniff_pickle_file(const Source& source) {
  if (source.is_directory()) return false;
  const Bytes bytes = source.bytes();
  if (has_header(bytes)) return true;
  if (bytes.size() < 2 || bytes.size() > kHeaderlessBytesMax) return false;
  const auto tree = read_pickle(bytes);
  return tree && tree->end() == bytes.size();
}

Result<Checkpoint> read_pickle_file(const Source& source, const FormatTable&) {
  CKPTVERIFY_TRY(const auto tree, read_pickle(source.bytes()));
  const TorchContext context{.find = no_storages,
                             .read_nested = nested_reader(source.name(), kNestedFilesMax)};
  CKPTVERIFY_TRY(auto objects, read_torch_objects(tree, context));
  Checkpoint checkpoint;
  checkpoint.format = "pickle";
  checkpoint.files = {source};
  checkpoint.entries = std::move(objects.entries);
  checkpoint.findings = std::move(objects.findings);
  checkpoint.uninterpreted = std::move(objects.uninterpreted);
  // No checksum, and much that means nothing: numbers of the memo, locations, hooks.
  checkpoint.coverage.own({{.size = tree.end()}, Owner::kUnverifiable, "pickle"});
  if (const std::uint64_t size = source.bytes().size(); tree.end() != size) {
    checkpoint.findings.push_back({.check = "static.container",
                                   .status = Status::kFail,
                                   .cause = Cause{CauseKind::kLayout},
                                   .subject = source.name(),
                                   .message = "byte " + std::to_string(tree.end()) +
                                              ": bytes after the pickle; found " +
                                              std::to_string(size - tree.end()) + ", expected 0",
                                   .evidence = {{"offset", std::to_string(tree.end())}}});
  }
  sort_entries(checkpoint);
  assign_torch_components(tree.root(), checkpoint.entries);
  find_aliases(checkpoint.entries);
  return checkpoint;
}

}  // namespace ckptverify
