// Tensors in a pickle: storages by persistent id, and the functions of torch._utils that rebuild
// tensors from them, as nodes of a checkpoint. Nothing is called; the arguments say it all.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ckptverify/checkpoint.h"
#include "ckptverify/result.h"
#include "ckptverify/tensor.h"
#include "formats/encoding/pickle.h"

namespace ckptverify {

/// Very old files: a storage that is a part of another.
struct StorageView {
  std::string key;
  std::uint64_t first_element = 0;
  std::uint64_t element_count = 0;
};

/// A persistent id: ('storage', class, key, location, count[, view]).
struct StorageReference {
  std::string key;
  std::string location;        // "cpu", "cuda:0", "meta"
  std::optional<DType> dtype;  // of the class; none for UntypedStorage, whose elements are bytes
  std::uint64_t element_count = 0;
  std::uint64_t size = 0;    // bytes
  std::uint64_t offset = 0;  // of the reference, in the pickle's file
  std::optional<StorageView> view = {};
};

/// Where the storage's bytes are: a run of exactly `size` decoded bytes. An error where the
/// checkpoint has no such storage or another size.
using FindStorage = std::function<Result<Run>(const StorageReference&)>;
/// A torch.save file inside of a pickle, as a checkpoint whose runs own their bytes.
using ReadNested = std::function<Result<Checkpoint>(std::vector<std::byte> bytes)>;

struct TorchContext {
  FindStorage find;
  ByteOrder byte_order = ByteOrder::kLittle;
  ReadNested read_nested = {};  // none: such a file is not interpreted
  /// What a persistent id that is no storage stands for; none: nothing that we know.
  std::function<Result<Tensor>(const PickleNode& id)> by_id = {};
  /// Shared by all who read one pickle: each nested file is read once.
  std::shared_ptr<std::map<const PickleNode*, std::shared_ptr<const Checkpoint>>> nested =
      std::make_shared<std::map<const PickleNode*, std::shared_ptr<const Checkpoint>>>();
};

/// "FloatStorage" of any module; none for an untyped storage; an error for another name.
Result<std::optional<DType>> storage_dtype(std::string_view class_name);
/// "torch.float32".
std::optional<DType> torch_dtype(std::string_view qualified_name);

bool is_storage(const PickleNode& node);
Result<StorageReference> storage_reference(const PickleNode& node);

/// torch.storage._load_from_bytes: how a plain pickle holds a storage, and any object in it.
bool is_nested_file(const PickleNode& node);
Result<std::shared_ptr<const Checkpoint>> nested_file(const PickleNode& node,
                                                      const TorchContext& context);

/// A function of torch and what it is given.
struct TorchCall {
  std::string name;
  PickleItems arguments;
  std::uint64_t offset = 0;
};

/// A call of one of the functions that rebuild a tensor, or a storage itself.
bool is_tensor(const PickleNode& node);
bool is_tensor_function(std::string_view qualified_name);
/// A Tensor, or a Composite for quantized, sparse and nested ones. Errors carry the call's offset;
/// strides that leave the storage are kLayout.
Result<Node> rebuild_tensor(const PickleNode& node, const TorchContext& context);
Result<Node> rebuild_tensor(const TorchCall& call, const TorchContext& context);

Result<std::uint64_t> natural_of(const PickleNode& node);
/// Non-negative integers of a tuple, a list or a torch.Size.
Result<std::vector<std::uint64_t>> dimensions_of(const PickleNode& node);

}  // namespace ckptverify
