// Everything that the experiment saw, as plain data: the judge reads this and nothing else.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ckptverify/comparison.h"
#include "ckptverify/event.h"
#include "ckptverify/exit.h"
#include "ckptverify/fingerprint.h"
#include "ckptverify/plan.h"
#include "ckptverify/report.h"

namespace ckptverify {

/// One entry of a state, wherever it was seen.
struct StateItem {
  Digest digest;
  std::string text;  // a value's text, or dtype and shape of a tensor; empty if unknown
  bool is_tensor = false;
  std::string root = {};  // of one on disk: what stands before its path in the checkpoint
};

/// A state as digests: component label -> path relative to the component -> entry. The same for
/// live states and for checkpoints on disk, so that they can be held against each other.
using StateDigests = std::map<std::string, std::map<std::string, StateItem>>;

StateDigests state_digests(const StateEvent& event);
StateDigests state_digests(const Checkpoint& checkpoint, const Fingerprint& fingerprint);

/// Of a checkpoint: what its digests leave out.
std::map<std::string, std::vector<std::string>> opaque_objects(const Checkpoint& checkpoint);

enum class KillOutcome {
  kNotSent,
  kConfirmed,    // ended by our SIGKILL, and no process of the tree is left
  kAlreadyGone,  // it had ended by itself before: the kill proves nothing
  kSurvivors,    // something is left after the deadline
};

/// A save that was acknowledged, or seen by its files, and could not be copied afterwards.
struct LostSave {
  std::uint64_t step = 0;
  std::string path;         // where the plan says that it is
  std::string why;          // empty: nothing is there
  std::string files = {};   // what the run's directory holds instead
  bool unfinished = false;  // it was there, and changed after it was acknowledged
};

/// A save that was waited for and did not come.
struct MissedSave {
  std::uint64_t step = 0;
  std::string path;   // where the plan says that it would be
  std::string files;  // what the run's directory holds instead
};

/// One process tree from start to end.
struct RunRecord {
  std::vector<std::string> command;
  Trace trace;
  Exit exit;
  KillOutcome kill = KillOutcome::kNotSent;
  std::uint64_t processes_killed = 0;
  /// The save that it was held or stopped at; none if it never got there.
  std::optional<std::uint64_t> held_at = {};
  /// What it was waiting for when a deadline passed: "the first step", "the save at step 5".
  std::string overdue = {};
  std::string log_tail = {};  // the last lines of its output, for evidence
  std::optional<LostSave> lost_save = {};
  std::optional<MissedSave> missed_save = {};
  bool guardian_lost = false;   // killed from outside: how the run ended is not known
  bool guardian_stuck = false;  // it did not obey the order to kill and was killed itself
  std::vector<std::int32_t> survivors = {};  // processes that no SIGKILL ended
  /// Processes that told the save that it was held at and were not there to be killed: they had
  /// ended, or run where the tree does not reach.
  std::vector<std::int64_t> out_of_reach = {};
  bool disk_full = false;  // when it ended, no further checkpoint had room
};

/// A checkpoint read from disk by our own reader.
struct CheckpointRecord {
  std::string format;
  Fingerprint fingerprint;
  StateDigests digests;
  /// Component label -> "path (class)" of objects that are not modelled and so not compared.
  std::map<std::string, std::vector<std::string>> opaque = {};
  std::map<std::string, Digest> unread = {};  // file -> digest, of those that no reader looks into
};

struct Observations {
  std::uint64_t save_step = 0;   // N
  std::uint64_t final_step = 0;  // N + M
  /// Why the experiment ended before its end: a signal to us, something that we could not do.
  std::string broken_off = {};

  RunRecord reference;
  RunRecord interrupted;
  std::optional<RunRecord> resumed = {};  // none: there was nothing to restore
  /// The checkpoint that it was given, and the gate's directory, which holds all others; both with
  /// links resolved too.
  std::vector<std::string> restored_from = {};
  std::vector<std::string> output = {};
  /// Paths that the resumed run tells of restores -> with links resolved, where they exist.
  std::map<std::string, std::string> real_paths = {};
  /// Whether the resumed run opened any file of the checkpoint that it was given; none: not known.
  std::optional<bool> checkpoint_opened = {};
  /// The reference's checkpoint of step N changed after it was saved and before its end.
  bool saved_changed_later = false;
  /// The resumed run wrote a checkpoint of step N again, as one that begins anew does.
  bool resumed_saved_again = false;
  std::optional<RunRecord> fresh_eval = {};      // of the moved copy at N
  std::optional<RunRecord> reference_eval = {};  // of the reference's checkpoint at N + M
  std::optional<RunRecord> resumed_eval = {};    // of the resumed run's checkpoint at N + M

  std::vector<Finding> static_findings = {};               // of the interrupted checkpoint at N
  std::optional<CheckpointRecord> reference_saved = {};    // at N
  std::optional<CheckpointRecord> interrupted_saved = {};  // at N: what was restored
  /// The two differ at N, so that the reference's was restored instead: its own future is known.
  bool restored_reference = false;
  std::optional<CheckpointRecord> reference_final = {};  // at N + M
  std::optional<CheckpointRecord> resumed_final = {};
  /// Static checks of the resumed run's checkpoint at N + M, and what kept the reference's from
  /// being read.
  std::vector<Finding> final_findings = {};
  std::optional<Comparison> noise = {};             // reference against interrupted, at N
  std::optional<Comparison> final_difference = {};  // reference against resumed, at N + M
};

}  // namespace ckptverify
