// Taking over: file numbers are shifted, paths prefixed, everything else stays as it was read.
#include "formats/container/assembly.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "formats/encoding/json_values.h"

namespace ckptverify {
namespace {

constexpr std::string_view kCheck = "static.container";
// Strays that are named one by one; a directory of logs would drown everything else.
constexpr std::size_t kStraysShownMax = 8;

void shift(Tensor& tensor, std::uint32_t first_file) {
  for (Piece& piece : tensor.pieces) {
    if (piece.run.owned == nullptr) piece.run.file += first_file;
  }
}

/// What stands where JSON should: another file altogether, the beginning of it, or damage.
Error json_fault(const Source& source, Error error, const FormatTable& table) {
  const Bytes bytes = source.bytes();
  if (table.recognise(source) == nullptr) {
    auto other = table.read(source);
    if (!other && other.error().kind == ErrorKind::kMalformed) return std::move(other).error();
  }
  const std::size_t end = as_text(bytes).find_last_not_of(" \t\r\n") + 1;
  const bool cut = error.offset && *error.offset >= end;
  error.message = "no strict JSON: " + error.message;
  error.cause = Cause{cut ? CauseKind::kTrunc : CauseKind::kBitrot, {}};
  return error;
}

}  // namespace

Node shifted(Node node, std::uint32_t first_file) {
  if (auto* tensor = std::get_if<Tensor>(&node)) shift(*tensor, first_file);
  if (const auto* composite = std::get_if<std::shared_ptr<const Composite>>(&node)) {
    auto copy = std::make_shared<Composite>(**composite);
    for (auto& [name, part] : copy->parts) part = shifted(std::move(part), first_file);
    return std::shared_ptr<const Composite>(std::move(copy));
  }
  return node;
}

Assembly::Assembly(std::string format, const Source& directory, const FormatTable& table)
    : directory_(directory), table_(table) {
  checkpoint_.format = std::move(format);
}

void Assembly::use(const std::string& name) {
  used_.insert(name);
  const std::string prefix = name + "/";
  const auto& members = directory_.members();
  for (auto member = std::lower_bound(members.begin(), members.end(), prefix);
       member != members.end() && member->starts_with(prefix); ++member)
    used_.insert(*member);
}

void Assembly::fail(CauseKind cause, const std::string& subject, const std::string& message,
                    std::vector<Evidence> evidence) {
  checkpoint_.findings.push_back({.check = std::string(kCheck),
                                  .status = Status::kFail,
                                  .cause = Cause{cause, {}},
                                  .subject = subject,
                                  .message = subject + ": " + message,
                                  .evidence = std::move(evidence)});
}

void Assembly::warn(const std::string& subject, const std::string& message,
                    std::vector<Evidence> evidence) {
  checkpoint_.findings.push_back({.check = std::string(kCheck),
                                  .status = Status::kWarn,
                                  .subject = subject,
                                  .message = subject + ": " + message,
                                  .evidence = std::move(evidence)});
}

Result<std::uint32_t> Assembly::add_file(const std::string& name) {
  use(name);
  CKPTVERIFY_TRY(Source member, directory_.member(name));
  const auto number = static_cast<std::uint32_t>(checkpoint_.files.size());
  checkpoint_.files.push_back(std::move(member));
  return number;
}

void Assembly::note(const Error& error) {
  checkpoint_.findings.push_back(finding_of(error, std::string(kCheck)));
}

/// Nobody can say what is in it, so nobody can say that it is whole.
void Assembly::refuse(const std::string& name, Error error) {
  note(std::move(error).about(name));
  if (!directory_.has_member(name)) return;
  if (const auto file = add_file(name)) {
    const std::uint64_t size = checkpoint_.files[*file].bytes().size();
    checkpoint_.coverage.own({{*file, 0, size}, Owner::kUnverifiable, "refused by its reader"});
  }
}

std::optional<Checkpoint> Assembly::read(const std::string& name) {
  const bool file = directory_.has_member(name);
  auto source = file ? directory_.member(name) : directory_.subdirectory(name);
  if (!source) {
    if (file) refuse(name, std::move(source).error());
    return std::nullopt;
  }
  use(name);
  auto part = table_.read(*source);
  if (!part) {
    refuse(name, std::move(part).error());
    return std::nullopt;
  }
  for (Finding& finding : part->findings)
    if (finding.subject.find(name) == std::string::npos) finding.evidence.push_back({"file", name});
  for (std::string& text : part->uninterpreted)
    if (text.find(name) == std::string::npos) text = name + ": " + text;
  for (StoredChecksum& checksum : part->checksums)
    if (checksum.subject.find(name) == std::string::npos) checksum.subject += " in " + name;
  return *std::move(part);
}

bool Assembly::add(const std::string& name, const Role& role) {
  auto part = read(name);
  if (!part) return false;
  absorb(*std::move(part), role);
  return true;
}

bool Assembly::add_json(const std::string& name, const Role& role) {
  if (!directory_.has_member(name)) return false;
  auto source = directory_.member(name);
  if (!source) {
    refuse(name, std::move(source).error());
    return false;
  }
  auto entries = json_values(as_text(source->bytes()));
  if (!entries) {
    refuse(name, json_fault(*source, std::move(entries).error(), table_));
    return false;
  }
  use(name);
  Checkpoint part;
  part.coverage.own({{0, 0, source->bytes().size()}, Owner::kUnverifiable, "JSON"});
  part.files = {*std::move(source)};
  part.entries = *std::move(entries);
  absorb(std::move(part), role);
  return true;
}

void Assembly::leave_out(const std::string& directory_name) {
  use(directory_name);
  for (const std::string& member : directory_.refused())
    if (member == directory_name || member.starts_with(directory_name + "/")) used_.insert(member);
}

void Assembly::add_accessory(const std::string& name) {
  const auto file = add_file(name);
  if (!file) return refuse(name, file.error());
  const std::uint64_t size = checkpoint_.files[*file].bytes().size();
  checkpoint_.coverage.own({{*file, 0, size}, Owner::kUnverifiable, "no state"});
}

void Assembly::absorb(Checkpoint part, const Role& role) {
  const auto first_file = static_cast<std::uint32_t>(checkpoint_.files.size());
  for (Source& file : part.files) checkpoint_.files.push_back(std::move(file));
  checkpoint_.coverage.absorb(std::move(part.coverage), first_file);
  for (StoredChecksum& checksum : part.checksums) {
    if (checksum.run.owned == nullptr) checksum.run.file += first_file;
    if (!checksum.entry.empty()) checksum.entry = role.root + checksum.entry;
    checkpoint_.checksums.push_back(std::move(checksum));
  }
  for (Entry& entry : part.entries) {
    entry.node = shifted(std::move(entry.node), first_file);
    entry.path = role.root + entry.path;
    if (entry.path.ends_with('.') && entry.path.size() == role.root.size() && !role.root.empty())
      entry.path.pop_back();  // a bare value: the file is the entry
    if (!entry.alias_of.empty()) entry.alias_of = role.root + entry.alias_of;
    if (role.rank) entry.rank = role.rank;
    if (role.component) {
      entry.component = *role.component;
      entry.root_size = std::min(role.component_root.value_or(role.root.size()), entry.path.size());
    } else if (role.component_root) {
      entry.root_size = *role.component_root;
    } else if (entry.root_size != 0 || entry.component != Component::kOther) {
      entry.root_size += role.root.size();
    }
    checkpoint_.entries.push_back(std::move(entry));
  }
  const auto append = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  append(checkpoint_.findings, part.findings);
  append(checkpoint_.uninterpreted, part.uninterpreted);
}

Checkpoint Assembly::finish() && {
  std::vector<std::string> strays;
  for (const std::string& member : directory_.members())
    if (!used_.contains(member)) strays.push_back(member);
  checkpoint_.unread = strays;
  for (std::size_t i = 0; i < std::min(strays.size(), kStraysShownMax); ++i)
    warn(strays[i], "belongs to nothing that is known of this layout");
  if (strays.size() > kStraysShownMax)
    warn(directory_.name(), "more files belong to nothing that is known of this layout; found " +
                                std::to_string(strays.size()));
  for (const std::string& member : directory_.refused())
    if (!used_.contains(member))
      fail(CauseKind::kLayout, member,
           "is not a regular file inside of the directory; it is never opened");
  sort_entries(checkpoint_);
  return std::move(checkpoint_);
}

}  // namespace ckptverify
