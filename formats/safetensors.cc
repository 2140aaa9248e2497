// safetensors.
//
//   | u64 N | N bytes of JSON, right-padded with spaces | buffer: the tensors, end to end |
//
//   {"__metadata__": {string: string},
//    "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end in the buffer]}}
#include "formats/safetensors.h"

#include <string>
#include <utility>

#include "formats/container/safetensors_header.h"
#include "formats/encoding/state_components.h"

namespace ckptverify {
namespace {

void add_tensor(const SafetensorsTensor& tensor, Checkpoint& checkpoint) {
  checkpoint.coverage.own(
      {{0, tensor.begin, tensor.end - tensor.begin}, Owner::kTensor, tensor.name});
  auto node = safetensors_tensor(tensor, 0);
  if (!node) {
    checkpoint.uninterpreted.push_back("tensor '" + tensor.name + "': PyTorch has no " +
                                       std::string(tensor.type.name) +
                                       " tensor of this shape, its bytes were not interpreted");
    return;
  }
  checkpoint.entries.push_back(Entry{.path = tensor.name, .node = *std::move(node)});
}

}  // namespace

bool sniff_safetensors(const Source& source) {
  return !source.is_directory() && begins_as_safetensors(source.bytes());
}

Result<Checkpoint> read_safetensors(const Source& source, const FormatTable&) {
  CKPTVERIFY_TRY(const SafetensorsHeader header, read_safetensors_header(source.bytes()));
  Checkpoint checkpoint;
  checkpoint.format = "safetensors";
  checkpoint.files = {source};
  own_safetensors_header(header, 0, checkpoint.coverage);
  for (const SafetensorsTensor& tensor : header.tensors) add_tensor(tensor, checkpoint);
  assign_state_components(checkpoint.entries, {});
  sort_entries(checkpoint);
  return checkpoint;
}

}  // namespace ckptverify
