// Lays the observations out for comparison: steps by number, states by moment, and the small
// helpers that every group of checks uses.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "harness/judge_parts.h"

namespace ckptverify::judging {
namespace {

void absorb(StateDigests& into, const StateEvent& event) {
  for (auto& [label, items] : state_digests(event)) into[label].insert(items.begin(), items.end());
}

void note_state(RunView& view, const StateEvent& event) {
  switch (event.at) {
    case StateMoment::kInit:
      return absorb(view.init, event);
    case StateMoment::kSave:
      return absorb(view.saves[event.step], event);
    case StateMoment::kRestored:
      view.restored_events.push_back(&event);
      return absorb(view.restored_state, event);
  }
}

/// Figures are one rank's own, states are everybody's.
void note_steps(RunView& view, std::uint32_t rank) {
  for (const Event& event : view.record->trace.events) {
    if (event.role != "trainer" || event.rank != rank) continue;
    if (const auto* restored = std::get_if<RestoredEvent>(&event.what))
      view.restores.push_back(restored);
    if (const auto* step = std::get_if<StepEvent>(&event.what)) {
      view.steps.emplace(step->step, step);
      if (!view.first_step) view.first_step = step->step;
      view.last_step = std::max(view.last_step.value_or(0), step->step);
    }
  }
}

std::vector<const StateEvent*> restored_by(std::uint32_t rank, const RunView& view) {
  std::vector<const StateEvent*> states;
  if (view.record == nullptr) return states;
  for (const Event& event : view.record->trace.events) {
    const auto* state = std::get_if<StateEvent>(&event.what);
    if (state == nullptr || event.role != "trainer" || event.rank != rank) continue;
    if (state->at == StateMoment::kRestored) states.push_back(state);
  }
  return states;
}

RunView view_of(const RunRecord& record, std::uint32_t rank) {
  RunView view;
  view.record = &record;
  for (const Event& event : record.trace.events) {
    if (event.role != "trainer") continue;
    if (const auto* state = std::get_if<StateEvent>(&event.what)) note_state(view, *state);
  }
  note_steps(view, rank);
  return view;
}

/// A trainer whose `step` is not the number of updates completed, as its own save of N shows.
std::string miscount_of(const Case& subject, std::uint32_t lead) {
  const RunView& reference = subject.reference;
  const char* rule = "; `step` is the number of updates completed, in all events (docs/events.md)";
  if (reference.first_step && *reference.first_step == 0)
    return "the reference tells its steps from 0" + std::string(rule);
  std::uint64_t last = 0;
  for (const Event& event : reference.record->trace.events) {
    if (event.role != "trainer" || event.rank != lead) continue;
    if (const auto* step = std::get_if<StepEvent>(&event.what)) last = step->step;
    const auto* save = std::get_if<SaveEvent>(&event.what);
    if (save == nullptr || save->point != SavePoint::kEnd || save->step != subject.save_step())
      continue;
    if (last <= save->step) return {};
    return "the reference tells " + step_text(last) + " before its save of " +
           step_text(save->step) + rule;
  }
  return {};
}

void drop_steps(RunView& view) {
  view.steps.clear();
  view.first_step.reset();
  view.last_step.reset();
}

void settle_misplaced(Case& subject) {
  if (subject.disk == nullptr) return;
  const StateDigests& told = subject.live.empty() ? subject.resumed.restored_state : subject.live;
  subject.misplaced = find_misplaced(told, *subject.disk);
  if (subject.misplaced.empty()) return;
  StateDigests disk = *subject.disk;
  take_out_of_disk(disk, subject.misplaced);
  subject.disk_without_misplaced = std::make_shared<const StateDigests>(std::move(disk));
  subject.disk = subject.disk_without_misplaced.get();
  take_out_told(subject.live, subject.misplaced);
  take_out_told(subject.resumed.restored_state, subject.misplaced);
}

}  // namespace

const StepEvent* RunView::step(std::uint64_t number) const {
  const auto found = steps.find(number);
  return found == steps.end() ? nullptr : found->second;
}

const StepEvent* RunView::first() const {
  return first_step ? step(*first_step) : nullptr;
}

std::vector<std::uint32_t> ranks_of(const Observations& observations) {
  std::set<std::uint32_t> ranks;
  const auto note = [&ranks](const RunRecord& run) {
    for (const Event& event : run.trace.events)
      if (event.role == "trainer" && (std::holds_alternative<StepEvent>(event.what) ||
                                      std::holds_alternative<RestoredEvent>(event.what)))
        ranks.insert(event.rank);
  };
  note(observations.reference);
  note(observations.interrupted);
  if (observations.resumed) note(*observations.resumed);
  return {ranks.begin(), ranks.end()};
}

std::uint64_t Case::next_step() const {
  const auto next = reference.steps.upper_bound(save_step());
  return next == reference.steps.end() ? save_step() + 1 : next->first;
}

Case seen_by(std::uint32_t rank, const Case& subject) {
  Case own = subject;
  for (RunView* view : {&own.reference, &own.interrupted, &own.resumed}) {
    drop_steps(*view);
    view->restores.clear();
    if (view->record != nullptr && subject.miscount.empty()) note_steps(*view, rank);
  }
  own.resumed.restored_state.clear();  // what others restored says nothing of this rank's start
  for (const StateEvent* event : restored_by(rank, own.resumed))
    absorb(own.resumed.restored_state, *event);
  take_out_told(own.resumed.restored_state, own.misplaced);
  own.noise = measure_noise(own);
  own.start = find_start(own);
  return own;
}

Case lay_out(const Plan& plan, const Observations& observations) {
  Case subject{.plan = plan, .seen = observations};
  const std::vector<std::uint32_t> ranks = ranks_of(observations);
  const std::uint32_t lead = ranks.empty() ? 0 : ranks.front();
  subject.reference = view_of(observations.reference, lead);
  subject.interrupted = view_of(observations.interrupted, lead);
  if (observations.resumed) subject.resumed = view_of(*observations.resumed, lead);
  // With noise the reference's snapshot was restored: its writer's state is what must come back.
  const bool of_reference = observations.restored_reference;
  const RunView& writer = of_reference ? subject.reference : subject.interrupted;
  if (const auto live = writer.saves.find(observations.save_step); live != writer.saves.end())
    subject.live = live->second;
  const auto& saved = of_reference ? observations.reference_saved : observations.interrupted_saved;
  if (saved) subject.disk = &saved->digests;
  settle_misplaced(subject);
  subject.miscount = miscount_of(subject, lead);
  if (!subject.miscount.empty())
    for (RunView* view : {&subject.reference, &subject.interrupted, &subject.resumed})
      drop_steps(*view);
  subject.init = subject.resumed.init;
  for (const auto& [label, items] : subject.reference.init)
    subject.init[label].insert(items.begin(), items.end());
  subject.noise = measure_noise(subject);
  subject.start = find_start(subject);
  return subject;
}

const Items* find_component(const StateDigests& state, std::string_view label) {
  const auto found = state.find(std::string(label));
  return found == state.end() || found->second.empty() ? nullptr : &found->second;
}

Component component_of_label(std::string_view label) {
  return component_named(label.substr(0, label.find('.'))).value_or(Component::kOther);
}

bool has_tensors(const Items& items) {
  return std::any_of(items.begin(), items.end(),
                     [](const auto& item) { return item.second.is_tensor; });
}

std::string_view last_key(std::string_view path) {
  const auto dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

bool tells_nothing(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.check == "process.trace" && finding.status == Status::kNotObserved;
  });
}

bool is_required(const Case& subject, Component component) {
  const auto& required = subject.plan.required;
  return std::find(required.begin(), required.end(), component) != required.end();
}

bool is_incidental(const Case& subject, Component component) {
  return (component == Component::kConfig || component == Component::kOther) &&
         !is_required(subject, component);
}

bool cause_named(const Judgement& judgement) {
  return std::any_of(judgement.findings.begin(), judgement.findings.end(), [](const Finding& f) {
    return f.status == Status::kFail && f.cause && f.cause->kind != CauseKind::kUnknown;
  });
}

bool within(const Tolerance& tolerance, double found, double expected) {
  if (std::isnan(found) || std::isnan(expected)) return std::isnan(found) && std::isnan(expected);
  if (found == expected) return true;
  return std::abs(found - expected) <= tolerance.absolute + tolerance.relative * std::abs(expected);
}

Tolerance tolerance_of(const Plan& plan, const std::string& metric) {
  const auto found = plan.metrics.find(metric);
  return found == plan.metrics.end() ? Tolerance{} : found->second;
}

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return std::string(text, end.ptr);
}

std::string step_text(std::uint64_t step) {
  return "step " + std::to_string(step);
}

std::string short_digest(const Digest& digest) {
  return "ckv1:" + digest.hex().substr(0, 12);
}

std::string item_text(const StateItem* item, const StateItem* beside) {
  if (item == nullptr) return "nothing";
  if (item->text.empty()) return short_digest(item->digest);
  const bool text_alone = !item->is_tensor && (beside == nullptr || !beside->text.empty());
  if (text_alone) return item->text;
  return short_digest(item->digest) + " (" + item->text + ")";
}

}  // namespace ckptverify::judging
