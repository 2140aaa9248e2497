// The format table: which format recognises a source, and what to say when none does.
#include "ckptverify/format.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "ckptverify/count_text.h"

namespace ckptverify {

namespace {

/// Begins with the words, letters of any case, after white space.
bool begins_with(std::string_view text, std::string_view words) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos || text.size() - start < words.size()) return false;
  return std::equal(words.begin(), words.end(), text.begin() + static_cast<std::ptrdiff_t>(start),
                    [](char word, char found) {
                      return word == std::tolower(static_cast<unsigned char>(found));
                    });
}

struct Impostor {
  std::string_view start;  // lower case
  std::string_view name;
};

constexpr std::array kImpostors = {
    Impostor{"version https://git-lfs.github.com/spec/", "a Git LFS pointer"},
    Impostor{"<!doctype html", "an HTML page"},
    Impostor{"<html", "an HTML page"},
    Impostor{"<?xml", "an XML document"},
};

// Beginnings of files that are something else, or a checkpoint in a wrapping that no loader opens.
constexpr std::array kOtherFiles = {
    Impostor{"\x7f"
             "ELF",
             "a program"},
    Impostor{"\x89PNG\r\n", "a picture"},
    Impostor{"\xff\xd8\xff", "a picture"},
    Impostor{"%PDF-", "a PDF document"},
    Impostor{"\x1f\x8b", "a gzip stream"},
    Impostor{"BZh", "a bzip2 stream"},
    Impostor{"\xfd"
             "7zXZ",
             "an xz stream"},
    Impostor{"\x28\xb5\x2f\xfd", "a zstd stream"},
};

constexpr std::string_view kZipEntry = "PK\3\4";
constexpr std::string_view kZipEnd = "PK\5\6";
// Where the archive still begins in a file with something in front: a shell's or a browser's lines.
constexpr std::size_t kLeadingBytesMax = 1 << 16;
constexpr std::size_t kZipEndSize = 22;

/// A zip archive of no known layout, or one that does not begin where its file does.
std::optional<Error> stray_archive(std::string_view text) {
  const std::size_t start = text.substr(0, kLeadingBytesMax).find(kZipEntry);
  if (start == std::string_view::npos || text.size() < kZipEndSize) return std::nullopt;
  if (start != 0 && text.rfind(kZipEnd) == std::string_view::npos) return std::nullopt;
  Error error{.message =
                  "a zip archive that no known writer makes; expected a top folder with "
                  "data.pkl in it",
              .offset = start,
              .cause = Cause{.kind = CauseKind::kLayout}};
  if (start != 0)
    error.message = "the archive does not begin where the file does; found " +
                    count_text(start, "byte") + " in front of it, expected 0";
  return error;
}

// How far below a directory a checkpoint is looked for ("runs/a/checkpoints/step-5"), how many
// names are asked for one on the way, and how many are listed: who is lost wants a hint, not an
// index.
constexpr std::size_t kLevelsMax = 4;
constexpr std::size_t kAskedMax = 256;
constexpr std::size_t kNamedMax = 8;

/// Checkpoints below a directory that is none, as near to it as there are any.
class Below {
 public:
  explicit Below(const FormatTable& table) : table_(table) {}

  std::vector<std::string> find(const Source& directory) {
    std::vector<std::string> level = {""};
    for (std::size_t depth = 0; depth < kLevelsMax && found_.empty(); ++depth) {
      std::vector<std::string> next;
      for (const std::string& prefix : level) look(directory, prefix, next);
      level = std::move(next);
    }
    return std::move(found_);
  }

 private:
  /// Asks what is directly below `prefix`; directories that are none are of the next level.
  void look(const Source& directory, const std::string& prefix, std::vector<std::string>& next) {
    const auto& members = directory.members();
    std::string last;
    for (auto member = std::lower_bound(members.begin(), members.end(), prefix);
         member != members.end() && member->starts_with(prefix) && asked_ < kAskedMax; ++member) {
      const std::size_t slash = member->find('/', prefix.size());
      const std::string name = slash == std::string::npos ? *member : member->substr(0, slash + 1);
      if (name == last) continue;
      last = name;
      ++asked_;
      const bool file = slash == std::string::npos;
      const auto source = file ? directory.member(name) : directory.subdirectory(name);
      if (!source) continue;
      if (const Format* format = table_.recognise(*source))
        found_.push_back(name + " (" + std::string(format->name) + ")");
      else if (!file)
        next.push_back(name);
    }
  }

  const FormatTable& table_;
  std::size_t asked_ = 0;
  std::vector<std::string> found_;
};

Error unrecognised_directory(const Source& source, const FormatTable& table) {
  Error error{.kind = ErrorKind::kUnsupported,
              .message = "no known checkpoint format; found a directory of " +
                         count_text(source.members().size(), "file")};
  const std::vector<std::string> below = Below(table).find(source);
  if (below.empty()) return error;
  std::string names;
  for (std::size_t i = 0; i < std::min(below.size(), kNamedMax); ++i)
    names += (i == 0 ? "" : ", ") + below[i];
  if (below.size() > kNamedMax)
    names += " and " + std::to_string(below.size() - kNamedMax) + " more";
  error.message += below.size() == 1 ? "; the checkpoint in it is " + names + ": name that"
                                     : "; checkpoints in it are " + names + ": name one of them";
  return error;
}

/// Nothing recognised the source: what stands in a checkpoint's place, where that can be told.
Error unrecognised(const Source& source, const FormatTable& table) {
  if (source.is_directory()) return unrecognised_directory(source, table);
  const std::string_view text = as_text(source.bytes());
  if (text.empty()) {
    return Error{.message = "not a checkpoint; found an empty file, expected at least one byte",
                 .offset = 0,
                 .cause = Cause{.kind = CauseKind::kTrunc}};
  }
  for (const Impostor& impostor : kImpostors) {
    if (!begins_with(text, impostor.start)) continue;
    return Error{.message = "not a checkpoint; found " + std::string(impostor.name) +
                            ", expected the data that it stands for",
                 .offset = 0,
                 .cause = Cause{.kind = CauseKind::kImpostor}};
  }
  for (const Impostor& other : kOtherFiles) {
    if (!text.starts_with(other.start)) continue;
    return Error{.message = "not a checkpoint; found " + std::string(other.name),
                 .offset = 0,
                 .cause = Cause{.kind = CauseKind::kImpostor}};
  }
  if (auto archive = stray_archive(text)) return *std::move(archive);
  if (text.find_first_not_of('\0') == std::string_view::npos) {
    return Error{.message = "every byte is zero: the size was set and the data never written",
                 .offset = 0,
                 .cause = Cause{.kind = CauseKind::kTrunc}};
  }
  return Error{.kind = ErrorKind::kUnsupported,
               .message = "no known checkpoint format; found a file of " +
                          count_text(text.size(), "byte") + " without a known beginning"};
}

// Names that are listed one by one; a directory of thousands of sockets is no checkpoint's
// business.
constexpr std::size_t kRefusedShownMax = 8;

bool is_told(const Checkpoint& checkpoint, const std::string& member) {
  return std::any_of(checkpoint.findings.begin(), checkpoint.findings.end(),
                     [&member](const Finding& finding) {
                       return !finding.subject.empty() && member.ends_with(finding.subject);
                     });
}

/// What is never opened is never silently passed over, whatever the layout's reader looks for.
void tell_refused(const Source& source, Checkpoint& checkpoint) {
  std::size_t shown = 0;
  for (const std::string& member : source.refused()) {
    if (is_told(checkpoint, member)) continue;
    if (shown++ == kRefusedShownMax) break;
    checkpoint.findings.push_back(
        {.check = "static.container",
         .status = Status::kWarn,
         .subject = member,
         .message =
             member + ": is not a regular file inside of the directory; it is never opened"});
  }
}

}  // namespace

const Format* FormatTable::recognise(const Source& source) const {
  const auto row = std::find_if(rows_.begin(), rows_.end(),
                                [&source](const Format& format) { return format.sniff(source); });
  return row == rows_.end() ? nullptr : &*row;
}

Result<Checkpoint> FormatTable::read(const Source& source) const {
  const Format* format = recognise(source);
  if (format == nullptr) return unrecognised(source, *this).about(source.name());
  auto checkpoint = format->read(source, *this);
  if (!checkpoint) return std::move(checkpoint).error().about(source.name());
  tell_refused(source, *checkpoint);
  return checkpoint;
}

}  // namespace ckptverify
