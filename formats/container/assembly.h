// A checkpoint put together from the files of a directory: each read by the format that recognises
// it, its entries under a path that says what the file is for, its bytes, checksums and findings
// taken over. One unreadable file hides no other.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "ckptverify/checkpoint.h"
#include "ckptverify/format.h"

namespace ckptverify {

/// What a file, or a directory in the directory, is for.
struct Role {
  std::string root = {};                    // before every path, with its '.'; may be empty
  std::optional<Component> component = {};  // of every entry; none: as the file's own reader said
  std::optional<std::uint32_t> rank = {};   // where each rank has its own
  /// Bytes of `root` that are the component's own root and so in no fingerprint: all of them, but
  /// where a second model or optimizer must be told apart from the first.
  std::optional<std::size_t> component_root = {};
};

class Assembly {
 public:
  /// The directory and the table must outlive it.
  Assembly(std::string format, const Source& directory, const FormatTable& table);

  /// Reads one of the directory's members, or the directory below that name, by the format that
  /// recognises it. What its reader refuses becomes a finding and is claimed as unverifiable;
  /// false then. A member that is not there is false and nothing else: the caller knows whether
  /// it must be.
  bool add(const std::string& name, const Role& role);
  /// What the table's reader makes of a member or a directory below, to be looked at and then
  /// absorbed; nothing where add() would be false. What is said of it names it.
  std::optional<Checkpoint> read(const std::string& name);
  /// A JSON file as values. NaN and Infinity may stand in it, as Python writes them.
  bool add_json(const std::string& name, const Role& role);
  /// A file that holds no state (a tokenizer, a README): owned whole, not interpreted further.
  void add_accessory(const std::string& name);
  /// The files below that directory belong to something else and are read by nobody here.
  void leave_out(const std::string& directory_name);
  /// What a reader made of the named members by itself.
  void absorb(Checkpoint part, const Role& role);
  /// A member as a file of the checkpoint, for readers that claim its bytes themselves.
  Result<std::uint32_t> add_file(const std::string& name);

  /// Notes a fault of the checkpoint: `subject: message`.
  void fail(CauseKind cause, const std::string& subject, const std::string& message,
            std::vector<Evidence> evidence = {});
  void warn(const std::string& subject, const std::string& message,
            std::vector<Evidence> evidence = {});
  /// What an error amounts to, and nothing about the bytes.
  void note(const Error& error);
  /// Notes the error and claims the member as unverifiable.
  void refuse(const std::string& name, Error error);

  /// Somebody has taken care of the member, or of everything below that directory.
  void use(const std::string& name);
  bool is_used(std::string_view member) const { return used_.contains(std::string(member)); }
  const Source& directory() const { return directory_; }
  const FormatTable& table() const { return table_; }
  Checkpoint& checkpoint() { return checkpoint_; }

  /// Sorted; a file of the directory that nothing used is listed as a warning, one that cannot be
  /// opened (a FIFO, a link that leaves the directory) as a failure.
  Checkpoint finish() &&;

 private:
  const Source& directory_;
  const FormatTable& table_;
  Checkpoint checkpoint_;
  std::set<std::string> used_;
};

/// The same node with its runs in files that begin at `first_file`.
Node shifted(Node node, std::uint32_t first_file);

}  // namespace ckptverify
