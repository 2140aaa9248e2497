#include "tests/unit/harness/judge_scene.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

namespace ckptverify::scene {
namespace {

void add(RunRecord& run, auto what) {
  Event event;
  event.seq = run.trace.events.size();
  event.role = "trainer";
  event.what = std::move(what);
  run.trace.events.push_back(std::move(event));
}

StateItem tensor(const std::string& text) {
  return {mark(text), "float32[4, 2]", true};
}
StateItem value(const std::string& text) {
  return {mark(text), text, false};
}

StateEvent event_of(const StateDigests& state, StateMoment moment, const std::string& captured_at,
                    std::uint64_t step) {
  StateEvent event{.at = moment, .captured_at = captured_at, .step = step, .components = {}};
  for (const auto& [label, items] : state)
    for (const auto& [path, item] : items) {
      StateEntry entry{.path = path, .digest = item.digest};
      if (item.is_tensor) entry.dtype = "float32";
      if (item.is_tensor) entry.shape = {4, 2};
      event.components[label].entries.push_back(std::move(entry));
    }
  return event;
}

StepEvent step_event(std::uint64_t step) {
  const auto t = static_cast<double>(step);
  return {.step = step,
          .loss = 4 / t,
          .lr = {0.001 * t},
          .scale = step < 4 ? 1024.0 : 2048.0,
          .grad_norm = 1 / t,
          .batch = mark(at("batch", step)),
          .rng = {{"torch", mark(at("torch-source", step))}, {"cxx", mark(at("cxx-source", step))}},
          .data_wait_s = 0.001};
}

void train(RunRecord& run, std::uint64_t first, std::uint64_t last) {
  for (std::uint64_t t = first; t <= last; ++t) {
    add(run, step_event(t));
    if (t != kSaved && t != kFinal) continue;
    add(run, event_of(state(t), StateMoment::kSave, "save_entry", t));
    add(run, SaveEvent{SavePoint::kBegin, "/run/step-" + std::to_string(t), t});
    add(run, SaveEvent{SavePoint::kEnd, "/run/step-" + std::to_string(t), t});
    add(run, EvalEvent{t, {{"loss", 3.0 / static_cast<double>(t)}}, mark(at("outputs", t))});
  }
}

void begin(RunRecord& run, const std::string& command) {
  run.command = {"trainer", command};
  add(run, StartEvent{run.command, {}, {}, {}});
  add(run, event_of(initial_state(), StateMoment::kInit, "construction", 0));
}

void kill_at(RunRecord& run, std::uint64_t step) {
  run.held_at = step;
  run.kill = KillOutcome::kConfirmed;
  run.processes_killed = 2;
  run.exit = {.kind = ExitKind::kSignalled, .signal = SIGKILL, .author = ExitAuthor::kUs};
}

RunRecord evaluation(std::uint64_t step) {
  RunRecord run;
  run.command = {"trainer", "evaluate"};
  add(run, EvalEvent{step, {{"loss", 3.0 / static_cast<double>(step)}}, mark(at("outputs", step))});
  run.exit = {.kind = ExitKind::kExited};
  return run;
}

CheckpointRecord checkpoint(std::uint64_t step) {
  CheckpointRecord record;
  record.format = "torch-zip";
  record.digests = state(step);
  return record;
}

StateEvent& state_event(RunRecord& run, StateMoment moment) {
  for (Event& event : run.trace.events)
    if (auto* found = std::get_if<StateEvent>(&event.what); found != nullptr && found->at == moment)
      return *found;
  throw std::logic_error("the scene has no such state event");
}

}  // namespace

Digest mark(const std::string& text) {
  return hash_bytes(as_bytes(text));
}

std::string at(const std::string& name, std::uint64_t step) {
  return name + '@' + std::to_string(step);
}

StateDigests state(std::uint64_t step) {
  StateDigests digests;
  digests["model"] = {{"wte", tensor(at("wte", step))},
                      {"head", tensor(at("wte", step))},
                      {"norm", tensor(at("norm", step))},
                      {"bias", tensor(at("bias", step))}};
  digests["optimizer"] = {
      {"state.0.exp_avg", tensor(at("m0", step))},   {"state.1.exp_avg", tensor(at("m1", step))},
      {"state.0.step", value(std::to_string(step))}, {"state.1.step", value(std::to_string(step))},
      {"param_groups.0.weight_decay", value("0.1")}, {"param_groups.0.lr", value(at("lr", step))}};
  digests["scheduler"] = {{"last_epoch", value(std::to_string(step))}};
  digests["scaler"] = {{"scale", value(step < 4 ? "1024" : "2048")},
                       {"growth_tracker", value(std::to_string(step % 4))}};
  digests["step"] = {{"step", value(std::to_string(step))}};
  digests["rng"] = {{"torch", value(at("torch-state", step))},
                    {"cxx", value(at("cxx-state", step))}};
  digests["data_cursor"] = {{"position", value(std::to_string(8 * step))},
                            {"shuffle_seed", value("17")}};
  digests["ema"] = {{"wte", tensor(at("average-wte", step))}};
  return digests;
}

StateDigests initial_state() {
  StateDigests digests = state(0);
  return {{"model", digests["model"]},
          {"rng", digests["rng"]},
          {"scheduler", digests["scheduler"]},
          {"ema", digests["ema"]}};
}

Plan plan() {
  Plan plan;
  plan.name = "scene";
  plan.save_step = kSaved;
  plan.final_step = kFinal;
  plan.eval = {"trainer", "evaluate"};
  return plan;
}

Observations healthy() {
  Observations seen;
  seen.save_step = kSaved;
  seen.final_step = kFinal;
  begin(seen.reference, "train");
  train(seen.reference, 1, kFinal);
  kill_at(seen.reference, kFinal);
  begin(seen.interrupted, "train");
  train(seen.interrupted, 1, kSaved);
  kill_at(seen.interrupted, kSaved);
  RunRecord& resumed = seen.resumed.emplace();
  begin(resumed, "resume");
  add(resumed, RestoredEvent{"/moved/step-5", kSaved});
  add(resumed, event_of(state(kSaved), StateMoment::kRestored, "before_first_batch", kSaved));
  train(resumed, kSaved + 1, kFinal);
  kill_at(resumed, kFinal);
  seen.fresh_eval = evaluation(kSaved);
  seen.reference_eval = evaluation(kFinal);
  seen.resumed_eval = evaluation(kFinal);
  seen.static_findings = {{.check = "static.readable", .message = "the checkpoint can be read"}};
  seen.reference_saved = checkpoint(kSaved);
  seen.interrupted_saved = checkpoint(kSaved);
  seen.reference_final = checkpoint(kFinal);
  seen.resumed_final = checkpoint(kFinal);
  seen.final_findings = seen.static_findings;
  return seen;
}

StateEvent& live(Observations& seen) {
  return state_event(seen.interrupted, StateMoment::kSave);
}
StateEvent& restored(Observations& seen) {
  return state_event(*seen.resumed, StateMoment::kRestored);
}
StateDigests& disk(Observations& seen) {
  return seen.interrupted_saved->digests;
}

void set_entry(StateEvent& event, const std::string& component, const std::string& path,
               const std::string& text) {
  for (StateEntry& entry : event.components.at(component).entries)
    if (entry.path == path) {
      entry.digest = mark(text);
      return;
    }
  throw std::logic_error("the scene has no entry " + component + " " + path);
}

void drop_component(StateEvent& event, const std::string& component) {
  if (event.components.erase(component) != 1) throw std::logic_error("no component " + component);
}

void drop_entry(StateEvent& event, const std::string& component, const std::string& path) {
  auto& entries = event.components.at(component).entries;
  const auto kept = std::remove_if(entries.begin(), entries.end(),
                                   [&](const StateEntry& entry) { return entry.path == path; });
  if (kept == entries.end()) throw std::logic_error("no entry " + component + " " + path);
  entries.erase(kept, entries.end());
}

std::vector<StepEvent*> steps(RunRecord& run) {
  std::vector<StepEvent*> found;
  for (Event& event : run.trace.events)
    if (auto* step = std::get_if<StepEvent>(&event.what)) found.push_back(step);
  return found;
}

StepEvent& step(RunRecord& run, std::uint64_t number) {
  for (StepEvent* event : steps(run))
    if (event->step == number) return *event;
  throw std::logic_error("the scene has no step " + std::to_string(number));
}

/// On disk, and live as the resumed run saved it.
void set_final(Observations& seen, const std::string& component, const std::string& path,
               const std::string& text) {
  seen.resumed_final->digests.at(component).at(path).digest = mark(text);
  for (Event& event : seen.resumed->trace.events)
    if (auto* state = std::get_if<StateEvent>(&event.what);
        state != nullptr && state->at == StateMoment::kSave && state->step == kFinal)
      set_entry(*state, component, path, text);
}

void change_final(Observations& seen, const std::string& component, const std::string& path) {
  set_final(seen, component, path, path + " parted");
}

void part_from(Observations& seen, std::uint64_t number) {
  for (StepEvent* event : steps(*seen.resumed))
    if (event->step >= number) {
      *event->loss += 0.125;
      *event->grad_norm += 0.5;
    }
  for (const char* path : {"wte", "head"}) set_final(seen, "model", path, "wte parted");
  change_final(seen, "model", "norm");
  change_final(seen, "optimizer", "state.0.exp_avg");
  change_final(seen, "ema", "wte");
}

void restart_from_scratch(Observations& seen) {
  RunRecord& resumed = *seen.resumed;
  resumed = {};
  begin(resumed, "resume");
  add(resumed, event_of(initial_state(), StateMoment::kRestored, "before_first_batch", 0));
  train(resumed, 1, kFinal);
  kill_at(resumed, kFinal);
}

void renumber(RunRecord& run) {
  std::uint64_t number = 0;
  for (Event& event : run.trace.events) event.seq = number++;
}

void drop_events_of_state(RunRecord& run) {
  std::erase_if(run.trace.events,
                [](const Event& event) { return std::holds_alternative<StateEvent>(event.what); });
  renumber(run);
}

void drop_restored_event(RunRecord& run) {
  std::erase_if(run.trace.events, [](const Event& event) {
    return std::holds_alternative<RestoredEvent>(event.what);
  });
  renumber(run);
}

const Finding& finding(const Judgement& judgement, const std::string& check) {
  for (const Finding& finding : judgement.findings)
    if (finding.check == check) return finding;
  static const Finding kAbsent{.check = "absent", .status = Status::kSkipped, .message = "absent"};
  ADD_FAILURE() << "there is no finding " << check;
  return kAbsent;
}

Verdict verdict(const Judgement& judgement) {
  return verdict_of(judgement.findings);
}

std::vector<std::string> causes(const Judgement& judgement) {
  std::vector<std::string> ids;
  for (const RankedCause& ranked : rank_causes(judgement.findings))
    ids.push_back(ranked.cause.id());
  return ids;
}

Judgement judged(const Observations& seen) {
  return judge(plan(), seen);
}

void lose_step_events(RunRecord& run) {
  std::erase_if(run.trace.events,
                [](const Event& event) { return std::holds_alternative<StepEvent>(event.what); });
  renumber(run);
}

Exit exited(int code) {
  return {.kind = ExitKind::kExited, .code = code};
}

}  // namespace ckptverify::scene
