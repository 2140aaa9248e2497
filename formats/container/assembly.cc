// Taking over: file numbers are shifted, paths prefixed, everything else stays as it was read.
#include "formats/container/assembly.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "formats/encoding/json_values.h"

namespace ckptverify {
namespace {

constexpr std::string_view kCheck = "static.container";

void shift(Tensor& tensor, std::uint32_t first_file) {
  for (Piece& piece : tensor.pieces) {
    if (piece.run.owned == nullptr) piece.run.file += first_file;
  }
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
  for (const std::string& member : directory_.members())
    if (member.starts_with(name + "/")) used_.insert(member);
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

/// Nobody can say what is in it, so nobody can say that it is whole.
void Assembly::refuse(const std::string& name, Error error) {
  error = std::move(error).about(name);
  checkpoint_.findings.push_back(finding_of(error, std::string(kCheck)));
  if (!directory_.has_member(name)) return;
  if (const auto file = add_file(name)) {
    const std::uint64_t size = checkpoint_.files[*file].bytes().size();
    checkpoint_.coverage.own({{*file, 0, size}, Owner::kUnverifiable, "refused by its reader"});
  }
}

bool Assembly::add(const std::string& name, const Role& role) {
  const bool file = directory_.has_member(name);
  auto source = file ? directory_.member(name) : directory_.subdirectory(name);
  if (!source) {
    if (file) refuse(name, std::move(source).error());
    return false;
  }
  use(name);
  auto part = table_.read(*source);
  if (!part) {
    refuse(name, std::move(part).error());
    return false;
  }
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
    refuse(name, std::move(entries).error());
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

void Assembly::add_accessory(const std::string& name) {
  const auto file = add_file(name);
  if (!file) return;
  const std::uint64_t size = checkpoint_.files[*file].bytes().size();
  checkpoint_.coverage.own({{*file, 0, size}, Owner::kUnverifiable, "no state"});
}

void Assembly::absorb(Checkpoint part, const Role& role) {
  const auto first_file = static_cast<std::uint32_t>(checkpoint_.files.size());
  for (Source& file : part.files) checkpoint_.files.push_back(std::move(file));
  checkpoint_.coverage.absorb(part.coverage, first_file);
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
      entry.root_size = std::min(role.root.size(), entry.path.size());
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
  for (const std::string& member : directory_.members()) {
    if (!used_.contains(member)) warn(member, "belongs to nothing that is known of this layout");
  }
  for (const std::string& member : directory_.refused())
    fail(CauseKind::kLayout, member,
         "is not a regular file inside of the directory; it is never opened");
  sort_entries(checkpoint_);
  return std::move(checkpoint_);
}

}  // namespace ckptverify
