// A made-up experiment that went well, and the verbs to spoil it: every test of the judge starts
// from here. The state is a function of the step: "wte@5" is the token table after step 5.
#pragma once

#include <string>
#include <vector>

#include "harness/judge.h"

namespace ckptverify::scene {

constexpr std::uint64_t kSaved = 5;   // N
constexpr std::uint64_t kFinal = 10;  // N + M

/// A digest that stands for the text.
Digest mark(const std::string& text);
std::string at(const std::string& name, std::uint64_t step);

Plan plan();
/// A trainer with tied weights, an EMA, a scaler and two sources of random numbers.
Observations healthy();
/// The whole state after that step.
StateDigests state(std::uint64_t step);
/// What `init` says: parameters and generators as built.
StateDigests initial_state();

StateEvent& live(Observations& seen);
StateEvent& restored(Observations& seen);
StateDigests& disk(Observations& seen);
/// Sets one entry of a component as an event tells it.
void set_entry(StateEvent& event, const std::string& component, const std::string& path,
               const std::string& text);
void drop_component(StateEvent& event, const std::string& component);
void drop_entry(StateEvent& event, const std::string& component, const std::string& path);

std::vector<StepEvent*> steps(RunRecord& run);
StepEvent& step(RunRecord& run, std::uint64_t number);
/// From that step on, losses, gradients and the final checkpoint's model and optimizer differ.
void part_from(Observations& seen, std::uint64_t number);
/// The resumed run's final checkpoint has another entry there.
void change_final(Observations& seen, const std::string& component, const std::string& path);
/// The resumed trainer ignores the checkpoint and trains from scratch, as it would in full.
void restart_from_scratch(Observations& seen);
/// Numbers the events as a trainer does that never told what was taken out.
void renumber(RunRecord& run);
void drop_events_of_state(RunRecord& run);
void drop_restored_event(RunRecord& run);
void lose_step_events(RunRecord& run);
Exit exited(int code);

/// By the plan of the scene.
Judgement judged(const Observations& seen);
const Finding& finding(const Judgement& judgement, const std::string& check);
Verdict verdict(const Judgement& judgement);
/// The ids of the causes, best first.
std::vector<std::string> causes(const Judgement& judgement);

}  // namespace ckptverify::scene
