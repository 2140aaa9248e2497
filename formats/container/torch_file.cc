#include "formats/container/torch_file.h"

#include <memory>
#include <utility>

namespace ckptverify {
namespace {

template <class T>
void append(std::vector<T>& to, std::vector<T>&& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

void finish(const PickleNode& root, Checkpoint& checkpoint) {
  sort_entries(checkpoint);
  assign_torch_components(root, checkpoint.entries);
  find_aliases(checkpoint.entries);
}

using Buffer = std::shared_ptr<const std::vector<std::byte>>;

void own_runs(Node& node, const Buffer& bytes) {
  if (auto* tensor = std::get_if<Tensor>(&node)) {
    for (Piece& piece : tensor->pieces) {
      if (piece.run.owned == nullptr) piece.run.owned = bytes;
    }
  } else if (auto* composite = std::get_if<std::shared_ptr<const Composite>>(&node)) {
    Composite copy = **composite;
    for (auto& [name, part] : copy.parts) own_runs(part, bytes);
    *composite = std::make_shared<const Composite>(std::move(copy));
  }
}

/// The checksums of a file that nobody will see again.
void verify_now(Checkpoint& checkpoint, const std::vector<std::byte>& bytes) {
  for (const StoredChecksum& checksum : checkpoint.checksums) {
    const auto covered = slice(bytes, checksum.run.offset, checksum.run.stored_size);
    const std::string found = covered ? checksum.compute(*covered) : "nothing";
    if (found == checksum.expected) continue;
    checkpoint.findings.push_back(
        {.check = "static.checksums",
         .status = Status::kFail,
         .cause = Cause{CauseKind::kBitrot},
         .subject = checksum.subject,
         .message = checksum.subject + ": the stored " + std::string(checksum.algorithm) +
                    " is wrong; found " + found + ", expected " + checksum.expected});
  }
  checkpoint.checksums.clear();
}

Result<Checkpoint> read_nested(const std::string& name, unsigned depth,
                               std::vector<std::byte> given) {
  if (depth == 0) {
    return Error{.kind = ErrorKind::kUnsupported,
                 .message = "torch.save files inside of each other; expected at most " +
                            std::to_string(kNestedFilesMax)};
  }
  const auto bytes = std::make_shared<const std::vector<std::byte>>(std::move(given));
  Checkpoint checkpoint;
  if (is_torch_stream(*bytes)) {
    CKPTVERIFY_TRY(auto stream, open_torch_stream({.bytes = *bytes}, name));
    TorchContext context = stream_context(stream);
    context.read_nested = nested_reader(name, depth - 1);
    CKPTVERIFY_TRY(auto objects, read_torch_objects(stream.tree, context));
    checkpoint.entries = std::move(objects.entries);
    checkpoint.findings = std::move(stream.findings);
    append(checkpoint.findings, std::move(objects.findings));
    checkpoint.uninterpreted = std::move(objects.uninterpreted);
  } else {
    CKPTVERIFY_TRY(auto archive, open_torch_archive({.bytes = *bytes}, name));
    CKPTVERIFY_TRY(const auto tree, read_archive_tree(archive));
    archive.read_nested = nested_reader(name, depth - 1);
    CKPTVERIFY_TRY_VOID(read_archive_into(archive, tree, checkpoint));
  }
  verify_now(checkpoint, *bytes);
  for (Entry& entry : checkpoint.entries) own_runs(entry.node, bytes);
  return checkpoint;
}

}  // namespace

Result<Checkpoint> archive_checkpoint(std::string format, const Source& source,
                                      TorchArchive& archive, const PickleTree& tree) {
  archive.read_nested = nested_reader(source.name(), kNestedFilesMax);
  Checkpoint checkpoint;
  checkpoint.format = std::move(format);
  checkpoint.files = {source};
  CKPTVERIFY_TRY_VOID(read_archive_into(archive, tree, checkpoint));
  finish(tree.root(), checkpoint);
  return checkpoint;
}

Result<Checkpoint> stream_checkpoint(std::string format, const Source& source,
                                     TorchStream& stream) {
  TorchContext context = stream_context(stream);
  context.read_nested = nested_reader(source.name(), kNestedFilesMax);
  CKPTVERIFY_TRY(auto objects, read_torch_objects(stream.tree, context));
  Checkpoint checkpoint;
  checkpoint.format = std::move(format);
  checkpoint.files = {source};
  for (OwnedRange& claim : stream.claims) checkpoint.coverage.own(std::move(claim));
  checkpoint.entries = std::move(objects.entries);
  append(checkpoint.findings, std::move(stream.findings));
  append(checkpoint.findings, std::move(objects.findings));
  checkpoint.uninterpreted = std::move(objects.uninterpreted);
  finish(stream.tree.root(), checkpoint);
  return checkpoint;
}

ReadNested nested_reader(std::string name, unsigned depth) {
  return [name = std::move(name), depth](std::vector<std::byte> bytes) {
    return read_nested(name, depth, std::move(bytes));
  };
}

}  // namespace ckptverify
