// What a trainer says while it runs: docs/events.md and docs/events.schema.json are the contract,
// these are its types. A Trace is the append-only list of one process tree's events.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ckptverify/fingerprint.h"
#include "ckptverify/result.h"

namespace ckptverify {

struct StartEvent {
  std::vector<std::string> command;
  std::map<std::string, std::string> versions;
  std::vector<std::string> hooks;     // what can be observed
  std::vector<std::string> unhooked;  // what cannot
};

struct RestoredEvent {
  std::string path;
  std::uint64_t step = 0;
};

struct StepEvent {
  std::uint64_t step = 0;                  // optimizer updates completed
  std::optional<double> loss = {};         // unscaled mean over the accumulation window
  std::vector<double> lr = {};             // per group, as the update used it
  std::optional<double> scale = {};        // loss scale after the update
  std::optional<double> grad_norm = {};    // unscaled, before clipping
  std::optional<Digest> batch = {};        // over the step's batches, in order
  std::map<std::string, Digest> rng = {};  // per source, after the update
  std::optional<double> data_wait_s = {};
};

enum class StateMoment { kInit, kSave, kRestored };

struct StateEntry {
  std::string path;  // relative to the component's root
  Digest digest;
  std::string dtype = {};  // empty for a value
  std::vector<std::uint64_t> shape = {};
};

struct ComponentState {
  Digest digest;  // over all entries
  std::vector<StateEntry> entries;
};

struct StateEvent {
  StateMoment at = StateMoment::kInit;
  std::string captured_at;  // "construction", "save_entry", "before_first_batch", ...
  std::uint64_t step = 0;
  std::map<std::string, ComponentState> components;  // "model", "rng.1"
};

enum class SavePoint { kBegin, kEnd };

struct SaveEvent {
  SavePoint point = SavePoint::kBegin;
  std::string path;
  std::uint64_t step = 0;
};

struct EvalEvent {
  std::uint64_t step = 0;
  std::map<std::string, double> metrics;
  std::optional<Digest> outputs = {};
};

struct MemoryEvent {
  std::string device;
  std::uint64_t allocated_bytes = 0;
  std::uint64_t reserved_bytes = 0;
  std::uint64_t peak_bytes = 0;
};

struct EndEvent {
  std::string reason;
};

struct Event {
  std::uint64_t seq = 0;
  std::int64_t pid = 0;
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::uint64_t t_mono_ns = 0;
  std::string role;  // "trainer", "launcher", "worker"
  std::variant<StartEvent, RestoredEvent, StepEvent, StateEvent, SaveEvent, EvalEvent, MemoryEvent,
               EndEvent>
      what;
};

/// A line that is no event: where, and why.
struct GarbledLine {
  std::string file;
  std::uint64_t line = 0;  // from 1
  std::string reason;
};

struct Trace {
  std::vector<Event> events;  // in order of appearance, per file
  std::vector<GarbledLine> garbled;
};

/// One line to one event; `directory` is where a side file that the line names lies.
Result<Event> parse_event(std::string_view line, const std::string& directory);

}  // namespace ckptverify
