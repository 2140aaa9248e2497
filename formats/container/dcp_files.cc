// An item has no header of its own: what stands at its place is an archive of this save, of
// another one whose items lie elsewhere, or damage.
#include "formats/container/dcp_files.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "formats/container/dcp_tiling.h"

namespace ckptverify {
namespace {

constexpr std::string_view kCheck = "static.container";
// Enough to see a pattern, few enough to read.
constexpr std::size_t kShownMax = 8;
// Items read before they are taken over: what one holds is some kilobytes until then.
constexpr std::size_t kBatchSize = 4096;
// Fewer are read faster than threads are started.
constexpr std::size_t kItemsPerThreadMin = 64;
constexpr unsigned kThreadsMax = 8;
// What a stream transform may decode to beside the tensor: the archive around it.
constexpr std::uint64_t kArchiveBytesMax = 1ULL << 20;
// And in all: an item of a few bytes may claim anything.
constexpr std::uint64_t kDecodedBytesMax = 256ULL << 20;
constexpr std::uint64_t kDecodedRatioMax = 1024;

std::string bytes_text(std::uint64_t count) {
  return std::to_string(count) + " bytes";
}

class Files {
 public:
  Files(Assembly& assembly, const DcpDescription& description, FewFindings& few)
      : assembly_(assembly), metadata_(description.metadata), few_(few) {
    list(description);
  }
  void open(DcpDepth depth);
  void read(DcpDepth depth);
  std::vector<DcpStored> finish() && { return std::move(stored_); }

 private:
  void list(const DcpDescription& description);
  void open_file(std::uint32_t file, std::vector<DcpStored*>& items);
  bool is_of_another_save(Bytes bytes, std::uint64_t end, const std::vector<DcpStored*>& items);
  void check_ends(const std::string& name, std::uint64_t size, std::vector<DcpStored*>& items);
  void check_overlaps(const std::string& name, std::vector<DcpStored*>& items);
  DcpItemPlace place_of(const DcpStored& stored) const;
  std::string name_of(const DcpStored& stored) const;
  bool is_object(const DcpStored& stored) const;
  void judge_raw(const DcpStored& stored);
  void take(DcpStored& stored, DcpItem item);
  void claim(std::uint32_t file, std::uint64_t begin, std::uint64_t end, const char* label);
  std::vector<Evidence> loss(const std::vector<DcpStored*>& items) const;

  Assembly& assembly_;
  const DcpMetadata& metadata_;
  FewFindings& few_;
  std::vector<DcpStored> stored_;
  bool any_archive_ = false;  // an object that is a torch.save archive
};

void Files::list(const DcpDescription& description) {
  for (std::uint32_t e = 0; e < metadata_.entries.size(); ++e) {
    const auto& chunks = metadata_.entries[e].chunks;
    for (std::uint32_t c = 0; c < chunks.size(); ++c)
      if (chunks[c].slice) stored_.push_back({.entry = e, .chunk = c, .slice = *chunks[c].slice});
  }
  for (const DcpReplica& replica : description.replicas)
    stored_.push_back({.entry = replica.entry,
                       .chunk = replica.chunk,
                       .rank = replica.rank,
                       .slice = replica.slice});
  for (const DcpOrphan& orphan : metadata_.orphans) {
    few_.add("orphan", dcp_fault(CauseKind::kLayout, orphan.name,
                                 "is stored, but no tensor or object has such a chunk"));
    stored_.push_back({.entry = DcpStored::kNoEntry, .slice = orphan.slice});
  }
}

bool Files::is_object(const DcpStored& stored) const {
  return stored.entry == DcpStored::kNoEntry || !metadata_.entries[stored.entry].is_tensor;
}

std::string Files::name_of(const DcpStored& stored) const {
  const std::string& file = metadata_.files[stored.slice.file];
  if (stored.entry == DcpStored::kNoEntry) return "an item in " + file;
  return metadata_.entries[stored.entry].name + " in " + file;
}

std::vector<Evidence> Files::loss(const std::vector<DcpStored*>& items) const {
  std::vector<Evidence> evidence = {{"items lost", std::to_string(items.size())}};
  if (!items.empty()) evidence.push_back({"first of them", name_of(*items.front())});
  return evidence;
}

void Files::claim(std::uint32_t file, std::uint64_t begin, std::uint64_t end, const char* label) {
  if (begin < end)
    assembly_.checkpoint().coverage.own({{file, begin, end - begin}, Owner::kUnverifiable, label});
}

/// Whole, but its items end elsewhere: a save over this one got as far as this file.
bool Files::is_of_another_save(Bytes bytes, std::uint64_t end,
                               const std::vector<DcpStored*>& items) {
  if (bytes.size() == end || !begins_and_ends_as_zip(bytes)) return false;
  for (const DcpStored* item : items)
    if (!metadata_.transforms[item->slice.transforms].empty()) return false;
  // Where the described items are all there, the rest is merely too much.
  if (end < bytes.size() && begins_and_ends_as_zip(bytes.first(static_cast<std::size_t>(end))))
    return false;
  // Cut exactly between two items, the file ends as an archive too.
  return std::none_of(items.begin(), items.end(), [&](const DcpStored* item) {
    return item->slice.offset + item->slice.size == bytes.size();
  });
}

void Files::check_ends(const std::string& name, std::uint64_t size,
                       std::vector<DcpStored*>& items) {
  std::vector<DcpStored*> lost;
  std::uint64_t kept_end = 0;
  std::uint64_t end = 0;
  for (DcpStored* item : items) {
    const auto item_end = checked_add(item->slice.offset, item->slice.size);
    const std::uint64_t reach = item_end ? *item_end : ~std::uint64_t{0};
    end = std::max(end, reach);
    if (reach > size)
      lost.push_back(item);
    else
      kept_end = std::max(kept_end, reach);
  }
  if (lost.empty()) return;
  few_.add("short", dcp_fault(CauseKind::kTrunc, name,
                              "byte " + std::to_string(size) + ": file is cut short; found " +
                                  bytes_text(size) + ", expected at least " + std::to_string(end),
                              loss(lost)));
  const std::uint32_t file = *lost.front()->file;
  claim(file, kept_end, size, "items that are cut short");
  for (DcpStored* item : lost) item->file.reset();
  std::erase_if(items, [](const DcpStored* item) { return !item->file; });
}

/// The items are sorted by offset. One that lies in another is not opened: a few bytes of metadata
/// could ask for the same megabytes again and again.
void Files::check_overlaps(const std::string& name, std::vector<DcpStored*>& items) {
  std::uint64_t end = 0;
  std::vector<DcpStored*> inside;
  for (DcpStored* item : items) {
    const std::uint64_t item_end = item->slice.offset + item->slice.size;
    if (item->slice.offset < end && item->slice.size > 0) {
      inside.push_back(item);
      claim(*item->file, end, item_end, "item that overlaps another");
    }
    end = std::max(end, item_end);
  }
  if (inside.empty()) return;
  few_.add("overlap", dcp_fault(CauseKind::kLayout, name,
                                "byte " + std::to_string(inside.front()->slice.offset) +
                                    ": an item begins inside of another; found " +
                                    std::to_string(inside.size()) + " such items, expected 0",
                                loss(inside)));
  for (DcpStored* item : inside) item->file.reset();
}

void Files::open_file(std::uint32_t file, std::vector<DcpStored*>& items) {
  const std::string& name = metadata_.files[file];
  if (!assembly_.directory().has_member(name)) {
    few_.add("missing", dcp_fault(CauseKind::kShardMissing, name,
                                  "file is missing; found none, expected one that holds " +
                                      std::to_string(items.size()) + " items",
                                  loss(items)));
    return;
  }
  const auto number = assembly_.add_file(name);
  if (!number) return assembly_.note(Error(number.error()).about(name));
  const Bytes bytes = assembly_.checkpoint().files[*number].bytes();
  std::stable_sort(items.begin(), items.end(), [](const DcpStored* a, const DcpStored* b) {
    return std::pair(a->slice.offset, a->slice.size) < std::pair(b->slice.offset, b->slice.size);
  });
  std::uint64_t end = 0;
  for (DcpStored* item : items) {
    item->file = *number;
    const auto item_end = checked_add(item->slice.offset, item->slice.size);
    end = std::max(end, item_end ? *item_end : ~std::uint64_t{0});
  }
  if (is_of_another_save(bytes, end, items)) {
    few_.add("other save",
             dcp_fault(CauseKind::kUncommitted, name,
                       "file is whole, but of another save than the metadata; found " +
                           bytes_text(bytes.size()) + ", expected " + std::to_string(end),
                       loss(items)));
    for (DcpStored* item : items) item->file.reset();
    return claim(*number, 0, bytes.size(), "file of another save");
  }
  check_ends(name, bytes.size(), items);
  check_overlaps(name, items);
}

void Files::open(DcpDepth depth) {
  std::vector<std::vector<DcpStored*>> items(metadata_.files.size());
  std::vector<bool> wanted(metadata_.files.size(), depth == DcpDepth::kItems);
  for (DcpStored& stored : stored_) {
    items[stored.slice.file].push_back(&stored);
    if (is_object(stored)) wanted[stored.slice.file] = true;
  }
  for (std::uint32_t file = 0; file < items.size(); ++file) {
    // Of a file that a listing does not open, only that it is there.
    if (wanted[file] || !assembly_.directory().has_member(metadata_.files[file]))
      open_file(file, items[file]);
    else
      assembly_.use(metadata_.files[file]);
  }
}

DcpItemPlace Files::place_of(const DcpStored& stored) const {
  const Bytes file = assembly_.checkpoint().files[*stored.file].bytes();
  const DcpSlice& where = stored.slice;
  std::uint64_t decoded = std::max(kDecodedBytesMax, where.size * kDecodedRatioMax);
  if (!is_object(stored)) {
    const DcpEntry& entry = metadata_.entries[stored.entry];
    const auto count = checked_product(entry.chunks[stored.chunk].sizes);
    const auto size =
        count ? checked_multiply(*count, entry.dtype ? dtype_size(*entry.dtype) : 1) : count;
    if (size && *size < decoded - std::min(decoded, kArchiveBytesMax))
      decoded = *size + kArchiveBytesMax;
  }
  return {.bytes = file.subspan(static_cast<std::size_t>(where.offset),
                                static_cast<std::size_t>(where.size)),
          .file = *stored.file,
          .offset = where.offset,
          .name = name_of(stored),
          .kind = is_object(stored) ? DcpItemKind::kObject : DcpItemKind::kTensor,
          .transforms = &metadata_.transforms[where.transforms],
          .size_max = decoded};
}

/// A planner may write bytes of its own beside archives; nobody writes zeros.
void Files::judge_raw(const DcpStored& stored) {
  const Bytes bytes = place_of(stored).bytes;
  const bool zero = !bytes.empty() && std::all_of(bytes.begin(), bytes.end(),
                                                  [](std::byte b) { return b == std::byte{0}; });
  Finding raw = dcp_fault(CauseKind::kBitrot, name_of(stored),
                          zero ? "is nothing but zero bytes; expected a torch.save archive"
                               : "is no torch.save archive, as other objects of this save are: "
                                 "taken for a planner's own bytes");
  if (!zero) {
    raw.status = Status::kWarn;
    raw.cause.reset();
  }
  few_.add(zero ? "zero" : "raw", std::move(raw));
}

void Files::take(DcpStored& stored, DcpItem item) {
  Checkpoint& whole = assembly_.checkpoint();
  const std::string& file = metadata_.files[stored.slice.file];
  if (item.refusal) {
    Error error = std::move(*item.refusal).about(name_of(stored));
    const std::string cause = error.cause ? error.cause->id() : "-";
    few_.add("refused " + cause + file, finding_of(error, std::string(kCheck)));
  } else if (item.is_raw && any_archive_ && is_object(stored)) {
    judge_raw(stored);
  }
  for (Finding& finding : item.part.findings) {
    std::string kind = finding.check + std::string(status_name(finding.status));
    if (finding.subject.find(file) == std::string::npos)
      finding.evidence.push_back({"item", name_of(stored)});
    few_.add(kind, std::move(finding));
  }
  const auto append = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  whole.coverage.absorb(std::move(item.part.coverage), 0);
  append(whole.checksums, item.part.checksums);
  append(whole.uninterpreted, item.part.uninterpreted);
  stored.entries = std::move(item.part.entries);
  stored.read = !item.refusal;
}

void Files::read(DcpDepth depth) {
  std::vector<DcpStored*> wanted;
  for (DcpStored& stored : stored_) {
    if (!stored.file || (depth == DcpDepth::kObjects && !is_object(stored))) continue;
    wanted.push_back(&stored);
    const bool plain = metadata_.transforms[stored.slice.transforms].empty();
    any_archive_ = any_archive_ ||
                   (plain && is_object(stored) && begins_and_ends_as_zip(place_of(stored).bytes));
  }
  for (std::size_t begin = 0; begin < wanted.size(); begin += kBatchSize) {
    const std::size_t count = std::min(kBatchSize, wanted.size() - begin);
    std::vector<DcpItem> items(count);
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      for (std::size_t i = next++; i < count; i = next++)
        items[i] = read_dcp_item(place_of(*wanted[begin + i]));
    };
    std::vector<std::thread> threads;
    const std::size_t more =
        std::min<std::size_t>({count / kItemsPerThreadMin, kThreadsMax,
                               std::max(1U, std::thread::hardware_concurrency())});
    for (std::size_t t = 1; t < more; ++t) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    for (std::size_t i = 0; i < count; ++i) take(*wanted[begin + i], std::move(items[i]));
  }
}

}  // namespace

Finding dcp_fault(CauseKind cause, const std::string& subject, const std::string& message,
                  std::vector<Evidence> evidence) {
  return {.check = std::string(kCheck),
          .status = Status::kFail,
          .cause = Cause{cause, {}},
          .subject = subject,
          .message = subject + ": " + message,
          .evidence = std::move(evidence)};
}

void FewFindings::add(const std::string& kind, Finding finding) {
  auto known = std::find_if(kinds_.begin(), kinds_.end(),
                            [&kind](const Kind& other) { return other.name == kind; });
  if (known == kinds_.end()) known = kinds_.insert(kinds_.end(), {kind, {}, 0});
  if (known->count++ < kShownMax)
    findings_.push_back(std::move(finding));
  else
    known->last = std::move(finding);
}

void FewFindings::finish() {
  for (Kind& kind : kinds_) {
    if (kind.count <= kShownMax) continue;
    kind.last.message = "and " + std::to_string(kind.count - kShownMax) +
                        " more of this kind, the last is " + kind.last.message;
    findings_.push_back(std::move(kind.last));
  }
  kinds_.clear();
}

std::vector<DcpStored> read_dcp_files(Assembly& assembly, const DcpDescription& description,
                                      DcpDepth depth, FewFindings& few) {
  Files files(assembly, description, few);
  files.open(depth);
  files.read(depth);
  return std::move(files).finish();
}

}  // namespace ckptverify
