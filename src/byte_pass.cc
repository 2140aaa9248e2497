// The plan: which bytes of which file are wanted for what, cut into segments. Then the threads take
// first what is read by itself, longest of all, and then the segments in the order of the files.
#include "src/byte_pass.h"

#include <algorithm>
#include <mutex>

#include "src/leaves.h"
#include "src/mapped_file.h"
#include "src/parallel.h"
#include "src/segment_walk.h"
#include "src/tensor_scan.h"

namespace ckptverify {
namespace {

// Long enough that the leaf which is read beyond a segment's end, and the cost of handing a segment
// out, do not count; short enough that threads end together.
constexpr std::uint64_t kSegmentSize = 16 * kLeafSize;

enum class Job { kGather, kChecksum, kSegment };

struct Task {
  Job job = Job::kSegment;
  std::size_t index = 0;  // of the tensor, checksum or file
  Segment segment = {};
};

bool covers_tensor(const StoredChecksum& checksum) {
  return !checksum.entry.empty();
}

/// What the checksum covers: a tensor's logical bytes, bytes that no file holds as such, or those
/// in the file.
Result<LogicalBytes> covered_bytes(const Checkpoint& checkpoint, const StoredChecksum& checksum) {
  if (!covers_tensor(checksum)) {
    CKPTVERIFY_TRY(const Bytes bytes, stored_bytes(checkpoint, checksum.run));
    return LogicalBytes(bytes);
  }
  const Entry* entry = find_entry(checkpoint, checksum.entry);
  const Tensor* tensor = entry == nullptr ? nullptr : std::get_if<Tensor>(&entry->node);
  if (tensor == nullptr) {
    return Error{.kind = ErrorKind::kMalformed,
                 .message = "a checksum covers a tensor that is not there; expected a tensor " +
                            checksum.entry};
  }
  return logical_bytes(checkpoint, *tensor);
}

class BytePass {
 public:
  BytePass(const Checkpoint& checkpoint, const PassRequest& request)
      : checkpoint_(checkpoint), request_(request) {
    plan_files();
    plan_tensors();
    if (request.checksums) plan_checksums();
    plan_segments();
  }

  Pass run() && {
    for_each_index(tasks_.size(), request_.threads, [this](std::size_t i) { work(tasks_[i]); });
    if (request_.checksums) join_sums();
    return std::move(pass_);
  }

 private:
  void plan_files() {
    for (const Source& file : checkpoint_.files) {
      files_.push_back({.bytes = file.bytes()});
      auto& leaves = pass_.file_leaves.emplace_back();
      if (request_.files) leaves.resize(leaf_count(file.bytes().size()));
    }
  }

  void plan_tensors() {
    const std::size_t count = request_.tensors.size();
    pass_.leaves.resize(count);
    pass_.contents.resize(count);
    pass_.errors.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      const Tensor& tensor = *request_.tensors[i];
      if (!stored_as_read(tensor) || tensor.pieces.front().run.owned != nullptr) {
        tasks_.push_back({.job = Job::kGather, .index = i});
      } else if (auto bytes = logical_bytes(checkpoint_, tensor)) {
        plan_leaves(i, bytes->view());
      } else {
        pass_.errors[i] = std::move(bytes).error();
      }
    }
  }

  void plan_leaves(std::size_t tensor, Bytes bytes) {
    FilePlan& file = files_[request_.tensors[tensor]->pieces.front().run.file];
    const auto start = static_cast<std::uint64_t>(bytes.data() - file.bytes.data());
    pass_.leaves[tensor].resize(leaf_count(bytes.size()));
    for (std::size_t leaf = 0; leaf < pass_.leaves[tensor].size(); ++leaf) {
      const std::uint64_t begin = leaf * kLeafSize;
      const std::uint64_t end = std::min<std::uint64_t>(begin + kLeafSize, bytes.size());
      file.leaves.push_back({start + begin, start + end, tensor, leaf});
    }
  }

  void plan_checksums() {
    const auto& checksums = checkpoint_.checksums;
    pass_.checksums.assign(checksums.size(), FoundChecksum{});
    for (std::size_t i = 0; i < checksums.size(); ++i) {
      const StoredChecksum& checksum = checksums[i];
      const bool in_file = checksum.piecewise != nullptr && !covers_tensor(checksum) &&
                           checksum.run.owned == nullptr;
      if (!in_file || !stored_bytes(checkpoint_, checksum.run)) {
        tasks_.push_back(
            {.job = Job::kChecksum, .index = i});  // where it cannot be read, it says so
        continue;
      }
      const Run& run = checksum.run;
      pass_.checksums[i] =
          FoundChecksum{.text = checksum.piecewise->text(0), .size = run.stored_size};
      if (run.stored_size == 0) continue;
      files_[run.file].checks.push_back({run.offset, run.offset + run.stored_size, i});
    }
  }

  /// The segments of a file in which a byte is wanted.
  void plan_segments() {
    for (std::size_t i = 0; i < files_.size(); ++i) {
      FilePlan& file = files_[i];
      const auto by_begin = [](const auto& a, const auto& b) { return a.begin < b.begin; };
      std::stable_sort(file.leaves.begin(), file.leaves.end(), by_begin);
      std::stable_sort(file.checks.begin(), file.checks.end(), by_begin);
      auto leaf = file.leaves.begin();
      std::uint64_t checked_until = 0;
      auto check = file.checks.begin();
      for (std::uint64_t begin = 0; begin < file.bytes.size(); begin += kSegmentSize) {
        const std::uint64_t end = std::min<std::uint64_t>(begin + kSegmentSize, file.bytes.size());
        bool wanted = request_.files || checked_until > begin;
        for (; leaf != file.leaves.end() && leaf->begin < end; ++leaf) wanted = true;
        for (; check != file.checks.end() && check->begin < end; ++check) {
          wanted = true;
          checked_until = std::max(checked_until, check->end);
        }
        if (wanted) tasks_.push_back({.index = i, .segment = {begin, end}});
      }
    }
  }

  void work(const Task& task) {
    switch (task.job) {
      case Job::kGather:
        return gather(task.index);
      case Job::kChecksum:
        return checksum(task.index);
      case Job::kSegment:
        return walk(task.index, task.segment);
    }
  }

  void count(std::uint64_t size) const {
    if (request_.threads.bytes_read != nullptr) *request_.threads.bytes_read += size;
  }

  void gather(std::size_t index) {
    const Tensor& tensor = *request_.tensors[index];
    const auto bytes = logical_bytes(checkpoint_, tensor);
    if (!bytes) {
      pass_.errors[index] = bytes.error();
      return;
    }
    for (Bytes rest = bytes->view(); !rest.empty();) {
      const Bytes leaf = rest.first(std::min<std::size_t>(kLeafSize, rest.size()));
      const std::uint64_t first = pass_.leaves[index].size() * kLeafSize / dtype_size(tensor.dtype);
      pass_.leaves[index].push_back(hash_bytes(leaf));
      if (request_.content) {
        add(pass_.contents[index], content_of(tensor.dtype, leaf, first));
      }
      rest = rest.subspan(leaf.size());
    }
    count(bytes->view().size());
  }

  void checksum(std::size_t index) {
    const StoredChecksum& stored = checkpoint_.checksums[index];
    const auto bytes = covered_bytes(checkpoint_, stored);
    if (!bytes) {
      pass_.checksums[index] = bytes.error();
      return;
    }
    pass_.checksums[index] =
        FoundChecksum{.text = stored.compute(bytes->view()), .size = bytes->view().size()};
  }

  void walk(std::size_t index, const Segment& segment) {
    const FilePlan& file = files_[index];
    if (!checkpoint_.files[index].path().empty()) {
      fetch_pages(file.bytes.subspan(segment.begin, segment.end - segment.begin));
    }
    WalkOutput output{.leaves = pass_.leaves, .file_leaves = pass_.file_leaves[index]};
    walk_segment(file, segment,
                 {.tensors = request_.tensors,
                  .checksums = checkpoint_.checksums,
                  .content = request_.content,
                  .file_leaves = request_.files,
                  .bytes_read = request_.threads.bytes_read},
                 output);
    const std::lock_guard lock(mutex_);
    for (const auto& [tensor, content] : output.contents) add(pass_.contents[tensor], content);
    sums_.insert(sums_.end(), output.sums.begin(), output.sums.end());
  }

  void join_sums() {
    std::sort(sums_.begin(), sums_.end(), [](const PartialSum& a, const PartialSum& b) {
      return a.checksum != b.checksum ? a.checksum < b.checksum : a.begin < b.begin;
    });
    for (auto part = sums_.begin(); part != sums_.end();) {
      const std::size_t index = part->checksum;
      const PiecewiseChecksum& piecewise = *checkpoint_.checksums[index].piecewise;
      std::uint64_t sum = part->sum;
      while (++part != sums_.end() && part->checksum == index) {
        sum = piecewise.join(sum, part->sum, part->size);
      }
      pass_.checksums[index]->text = piecewise.text(sum);
    }
  }

  const Checkpoint& checkpoint_;
  const PassRequest& request_;
  Pass pass_;
  std::vector<FilePlan> files_;
  std::vector<Task> tasks_;
  std::mutex mutex_;
  std::vector<PartialSum> sums_;
};

}  // namespace

Pass pass_over_bytes(const Checkpoint& checkpoint, const PassRequest& request) {
  return BytePass(checkpoint, request).run();
}

}  // namespace ckptverify
