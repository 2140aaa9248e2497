// Whole experiments on the odd trainer: each behaviour must end in the record that says what
// happened. What a record means is the judge's business and tested there.
#include "harness/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "formats/formats.h"
#include "tests/recovery/processes.h"

namespace ckptverify {
namespace {

using testing::built;
using testing::Directory;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::marked_processes;
using testing::new_mark;

Plan odd_plan(const std::string& behave, const std::string& mark) {
  // One that tells nothing is to go on for longer than its files are watched.
  const std::string step_us = behave == "no-events" ? "200000" : "1000";
  auto plan = load_plan(std::filesystem::path(CKPTVERIFY_SOURCE) / "fixtures/odd_trainer/plan.toml",
                        {{"behave", behave}, {"step_us", step_us}}, CKPTVERIFY_BUILD);
  EXPECT_TRUE(plan) << plan.error().text();
  const std::size_t equals = mark.find('=');
  plan->environment[mark.substr(0, equals)] = mark.substr(equals + 1);
  return *std::move(plan);
}

/// The record; nothing of its trees is left when it is returned.
ExperimentRecord run_plan(const Plan& plan, const Directory& directory, const std::string& mark) {
  auto record = run_experiment(
      plan, formats(),
      {.output_directory = directory.path() / "out", .tool = built("guardian_host")});
  EXPECT_TRUE(record) << record.error().text();
  EXPECT_THAT(marked_processes(mark), IsEmpty());
  return record ? *std::move(record) : ExperimentRecord{};
}

ExperimentRecord run_odd(const std::string& behave, const Directory& directory) {
  const std::string mark = new_mark();
  const Plan plan = odd_plan(behave, mark);
  return run_plan(plan, directory, mark);
}

std::vector<std::uint64_t> steps(const Trace& trace) {
  std::vector<std::uint64_t> all;
  for (const Event& event : trace.events) {
    if (const auto* step = std::get_if<StepEvent>(&event.what)) all.push_back(step->step);
  }
  return all;
}

std::vector<std::uint64_t> restored(const Trace& trace) {
  std::vector<std::uint64_t> all;
  for (const Event& event : trace.events) {
    if (const auto* what = std::get_if<RestoredEvent>(&event.what)) all.push_back(what->step);
  }
  return all;
}

void expect_same_run(const Observations& seen) {
  ASSERT_TRUE(seen.noise);
  EXPECT_TRUE(seen.noise->equal());
  EXPECT_FALSE(seen.restored_reference);
  ASSERT_TRUE(seen.final_difference);
  EXPECT_TRUE(seen.final_difference->equal());
  EXPECT_GT(seen.final_difference->compared_count, 8U);
  EXPECT_EQ(seen.checkpoint_opened, true);
  EXPECT_THAT(seen.interrupted.out_of_reach, IsEmpty());
  EXPECT_FALSE(seen.saved_changed_later);
}

TEST(Experiment, SeesANormalTrainerThroughToTheEnd) {
  const Directory directory;
  const ExperimentRecord record = run_odd("normal", directory);
  const Observations& seen = record.observations;
  EXPECT_EQ(seen.reference.held_at, 10U);
  EXPECT_EQ(seen.reference.kill, KillOutcome::kConfirmed);
  EXPECT_EQ(steps(seen.reference.trace),
            (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(seen.interrupted.held_at, 5U);
  EXPECT_EQ(seen.interrupted.kill, KillOutcome::kConfirmed);
  EXPECT_EQ(seen.interrupted.processes_killed, 1U);
  ASSERT_TRUE(seen.resumed);
  EXPECT_EQ(restored(seen.resumed->trace), (std::vector<std::uint64_t>{5}));
  EXPECT_EQ(steps(seen.resumed->trace), (std::vector<std::uint64_t>{6, 7, 8, 9, 10}));
  expect_same_run(seen);
  for (const Finding& finding : seen.static_findings) {
    EXPECT_NE(finding.status, Status::kFail) << finding.check << ": " << finding.message;
  }
  ASSERT_TRUE(seen.fresh_eval && seen.resumed_eval && seen.reference_eval);
  EXPECT_EQ(seen.fresh_eval->exit.text(), "exit 0");
  EXPECT_EQ(seen.resumed_eval->exit.text(), "exit 0");
  EXPECT_EQ(record.phases.size(), 6U);
  EXPECT_GT(record.timings.trainer_s, 0);
  EXPECT_GT(record.timings.copy_s, 0);
  EXPECT_EQ(record.interrupted_by, 0);
}

TEST(Experiment, FindsTheSameStateLiveOnDiskAndRestored) {
  const Directory directory;
  const Observations seen = run_odd("normal", directory).observations;
  ASSERT_TRUE(seen.interrupted_saved);
  std::optional<StateDigests> live;
  std::optional<StateDigests> again;
  for (const Event& event : seen.interrupted.trace.events) {
    const auto* state = std::get_if<StateEvent>(&event.what);
    if (state != nullptr && state->at == StateMoment::kSave) live = state_digests(*state);
  }
  for (const Event& event : seen.resumed->trace.events) {
    const auto* state = std::get_if<StateEvent>(&event.what);
    if (state != nullptr && state->at == StateMoment::kRestored) again = state_digests(*state);
  }
  ASSERT_TRUE(live && again);
  const StateDigests& disk = seen.interrupted_saved->digests;
  EXPECT_EQ(live->size(), 6U);
  for (const auto& [component, items] : *live) {
    ASSERT_TRUE(disk.contains(component) && again->contains(component)) << component;
    EXPECT_EQ(items.size(), disk.at(component).size()) << component;
    for (const auto& [path, item] : items) {
      ASSERT_TRUE(disk.at(component).contains(path)) << component << " " << path;
      EXPECT_EQ(item.digest, disk.at(component).at(path).digest) << component << " " << path;
      EXPECT_EQ(item.digest, again->at(component).at(path).digest) << component << " " << path;
    }
  }
}

TEST(Experiment, PutsTheOriginalsOutOfTheWayBeforeTheRestore) {
  const Directory directory;
  const Observations seen = run_odd("normal", directory).observations;
  const auto out = directory.path() / "out";
  EXPECT_FALSE(std::filesystem::exists(out / "run/interrupted"));
  EXPECT_TRUE(std::filesystem::exists(out / "away/interrupted/checkpoints/step-5"));
  EXPECT_FALSE(std::filesystem::exists(out / "run/reference"));
  EXPECT_TRUE(std::filesystem::exists(out / "away/reference/checkpoints/step-10"));
  EXPECT_THAT(seen.resumed->command,
              ::testing::Contains((out / "checkpoints/moved/step-5").string()));
}

TEST(Experiment, RecordsARestartFromScratch) {
  const Directory directory;
  const Observations seen = run_odd("ignore-resume", directory).observations;
  ASSERT_TRUE(seen.resumed);
  EXPECT_THAT(restored(seen.resumed->trace), IsEmpty());
  EXPECT_EQ(steps(seen.resumed->trace).front(), 1U);
  EXPECT_EQ(seen.resumed->held_at, 10U);
}

TEST(Experiment, RecordsACrashAtTheRestore) {
  const Directory directory;
  const Observations seen = run_odd("crash-at-restore", directory).observations;
  ASSERT_TRUE(seen.resumed);
  EXPECT_EQ(seen.resumed->exit.text(), "signal 6 (ABRT)");
  EXPECT_EQ(seen.resumed->kill, KillOutcome::kNotSent);
  EXPECT_FALSE(seen.resumed->held_at);
  EXPECT_FALSE(seen.resumed_final);
  EXPECT_FALSE(seen.final_difference);
}

TEST(Experiment, RecordsAHangAtTheRestore) {
  const Directory directory;
  const Observations seen = run_odd("hang-at-restore", directory).observations;
  ASSERT_TRUE(seen.resumed);
  EXPECT_EQ(seen.resumed->exit.kind, ExitKind::kTimedOut);
  EXPECT_EQ(seen.resumed->overdue, "the first step after the restore");
  EXPECT_EQ(seen.resumed->exit.text(), "deadline of 5 s at the first step after the restore");
  EXPECT_EQ(seen.resumed->kill, KillOutcome::kConfirmed);
}

TEST(Experiment, RecordsAKillThatCameTooLate) {
  const Directory directory;
  const Observations seen = run_odd("exit-early", directory).observations;
  EXPECT_EQ(seen.interrupted.held_at, 5U);
  EXPECT_EQ(seen.interrupted.kill, KillOutcome::kAlreadyGone);
  EXPECT_EQ(seen.interrupted.exit.text(), "exit 0");
}

TEST(Experiment, RecordsASaveThatIsAcknowledgedBeforeItIsThere) {
  const Directory directory;
  const ExperimentRecord record = run_odd("acknowledge-early", directory);
  ASSERT_TRUE(record.observations.reference.lost_save);
  const LostSave& lost = *record.observations.reference.lost_save;
  EXPECT_EQ(lost.step, 5U);
  EXPECT_EQ(lost.path, (directory.path() / "out/run/reference/checkpoints/step-5").string());
  EXPECT_EQ(lost.why, "");
  EXPECT_EQ(record.phases.size(), 1U);
  EXPECT_EQ(record.observations.broken_off, "");
}

TEST(Experiment, RecordsASaveThatCannotBeCopied) {
  const Directory directory;
  const Observations seen = run_odd("fifo-save", directory).observations;
  ASSERT_TRUE(seen.resumed && seen.resumed->lost_save);
  EXPECT_EQ(seen.resumed->lost_save->step, 10U);
  EXPECT_THAT(seen.resumed->lost_save->why, HasSubstr("is neither a regular file"));
  EXPECT_FALSE(seen.resumed_final);
}

TEST(Experiment, ChecksTheSecondSaveByItsBytes) {
  const Directory directory;
  const Observations seen = run_odd("spoil-last-save", directory).observations;
  EXPECT_EQ(seen.resumed->held_at, 10U);
  EXPECT_EQ(verdict_of(seen.static_findings), Verdict::kPass);
  EXPECT_EQ(verdict_of(seen.final_findings), Verdict::kFail);
}

TEST(Experiment, ReadsOnThroughGarbage) {
  const Directory directory;
  const Observations seen = run_odd("garbage-events", directory).observations;
  EXPECT_EQ(seen.reference.trace.garbled.size(), 30U);  // three lines at each of ten steps
  EXPECT_EQ(steps(seen.reference.trace).size(), 10U);
  expect_same_run(seen);
}

TEST(Experiment, KillsWorkersThatHide) {
  const Directory directory;
  const Observations seen = run_odd("workers-setsid", directory).observations;
  EXPECT_EQ(seen.interrupted.kill, KillOutcome::kConfirmed);
  EXPECT_EQ(seen.interrupted.processes_killed, 4U);
  expect_same_run(seen);
}

TEST(Experiment, GoesByTheFilesOfATrainerThatTellsNothing) {
  const Directory directory;
  const Observations seen = run_odd("no-events", directory).observations;
  EXPECT_THAT(seen.reference.trace.events, IsEmpty());
  EXPECT_EQ(seen.reference.held_at, 10U);
  EXPECT_EQ(seen.interrupted.held_at, 5U);
  EXPECT_EQ(seen.interrupted.kill, KillOutcome::kConfirmed);
  expect_same_run(seen);
}

TEST(Experiment, LeavesASaveThatTheTrainerWentPastWithoutWaiting) {
  const Directory directory;
  Plan plan = odd_plan("normal", new_mark());
  plan.save_step = 4;  // it saves every five steps
  const auto record = run_experiment(
      plan, formats(),
      {.output_directory = directory.path() / "out", .tool = built("guardian_host")});
  ASSERT_TRUE(record);
  const RunRecord& reference = record->observations.reference;
  EXPECT_EQ(reference.overdue, "");
  EXPECT_FALSE(reference.held_at);
  ASSERT_TRUE(reference.missed_save);
  EXPECT_EQ(reference.missed_save->step, 4U);
  EXPECT_EQ(reference.missed_save->path,
            (directory.path() / "out/run/reference/checkpoints/step-4").string());
  EXPECT_THAT(reference.missed_save->files, HasSubstr("checkpoints/step-5/"));
  EXPECT_EQ(record->phases.size(), 1U);
}

TEST(Experiment, SeesThatTheRestoredStepIsSavedAgain) {
  const Directory fresh;
  EXPECT_TRUE(run_odd("ignore-resume", fresh).observations.resumed_saved_again);
  const Directory resumed;
  EXPECT_FALSE(run_odd("normal", resumed).observations.resumed_saved_again);
}

TEST(Experiment, StopsWhereTheReferenceFails) {
  const Directory directory;
  const ExperimentRecord record = run_odd("crash-in-training", directory);
  EXPECT_EQ(record.observations.reference.exit.text(), "signal 6 (ABRT)");
  EXPECT_EQ(record.observations.reference.kill, KillOutcome::kNotSent);
  EXPECT_THAT(record.observations.reference.log_tail, HasSubstr("step 2 loss"));
  EXPECT_EQ(record.phases.size(), 1U);
  EXPECT_FALSE(record.observations.resumed);
}

TEST(Experiment, RestoresTheReferenceWhereRunsDoNotRepeat) {
  const Directory directory;
  const Observations seen = run_odd("nondeterministic", directory).observations;
  ASSERT_TRUE(seen.noise);
  EXPECT_FALSE(seen.noise->equal());
  EXPECT_TRUE(seen.restored_reference);
  ASSERT_TRUE(seen.final_difference);
  EXPECT_TRUE(seen.final_difference->equal());  // the reference's own future
}

TEST(Experiment, RestoresWhatTheTrainerWroteWhateverTheEvaluationDoesToIt) {
  const Directory directory;
  const std::string mark = new_mark();
  Plan plan = odd_plan("normal", mark);
  plan.eval = {"/bin/sh", "-c", "rm -r \"$0\"", "{checkpoint}"};
  const auto record = run_experiment(
      plan, formats(),
      {.output_directory = directory.path() / "out", .tool = built("guardian_host")});
  ASSERT_TRUE(record);
  const Observations& seen = record->observations;
  ASSERT_TRUE(seen.fresh_eval && seen.resumed);
  EXPECT_EQ(seen.fresh_eval->exit.text(), "exit 0");
  EXPECT_EQ(restored(seen.resumed->trace), (std::vector<std::uint64_t>{5}));
  EXPECT_EQ(seen.resumed->held_at, 10U);
  expect_same_run(seen);
}

TEST(Experiment, ResolvesTheLinksOfWhatATrainerSaysThatItRestored) {
  const Directory directory;
  Plan plan = odd_plan("normal", new_mark());
  const char* tell =
      "ln -s ../../away/reference link; echo "
      "'{{\"schema\":\"ckptverify.event/1\",\"seq\":0,\"pid\":7,\"rank\":0,\"world\":1,"
      "\"t_mono_ns\":1,\"role\":\"trainer\",\"type\":\"restored\",\"step\":5,"
      "\"path\":\"link/checkpoints/step-5\"}}' >> \"$CKPTVERIFY_EVENTS\"; exec \"$0\" \"$@\"";
  plan.resume.insert(plan.resume.begin(), {"/bin/sh", "-c", tell});
  const auto record = run_experiment(
      plan, formats(),
      {.output_directory = directory.path() / "out", .tool = built("guardian_host")});
  ASSERT_TRUE(record);
  const Observations& seen = record->observations;
  ASSERT_TRUE(seen.real_paths.contains("link/checkpoints/step-5"));
  EXPECT_EQ(seen.real_paths.at("link/checkpoints/step-5"),
            std::filesystem::canonical(directory.path() / "out/away/reference/checkpoints/step-5"));
}

/// A trainer without holds that tells its save and then does what the words say.
ExperimentRecord told_and_then(const std::string& words, const Directory& directory,
                               const std::string& mark) {
  Plan plan = odd_plan("normal", mark);
  plan.deadlines.step_s = 5;  // nothing comes after that save
  plan.train = {
      "/bin/sh", "-c",
      "p=\"$0/checkpoints/step-5\"; mkdir -p \"$p\"; echo early > \"$p/file\"; echo "
      "'{{\"schema\":\"ckptverify.event/1\",\"seq\":0,\"pid\":'$$',\"rank\":0,\"world\":1,"
      "\"t_mono_ns\":1,\"role\":\"trainer\",\"type\":\"save_end\",\"step\":5,\"path\":\"'"
      "\"$p\"'\"}}' >> \"$CKPTVERIFY_EVENTS\"; " +
          words,
      "{run_dir}"};
  return run_plan(plan, directory, mark);
}

TEST(Experiment, LosesASaveWhoseFilesChangeAfterItsAcknowledgement) {
  const Directory directory;
  const ExperimentRecord record =
      told_and_then("sleep 0.5; echo late >> \"$p/file\"; exec sleep 300", directory, new_mark());
  const auto& lost = record.observations.reference.lost_save;
  ASSERT_TRUE(lost);
  EXPECT_TRUE(lost->unfinished);
}

TEST(Experiment, LosesNoSaveWhoseFilesStay) {
  const Directory directory;
  const ExperimentRecord record = told_and_then("sleep 0.5; exec sleep 300", directory, new_mark());
  EXPECT_FALSE(record.observations.reference.lost_save);
}

TEST(Experiment, LosesASaveWhoseFilesComeAfterItsAcknowledgement) {
  const Directory directory;
  Plan plan = odd_plan("normal", new_mark());
  // It honours no hold, and its file is there before the grace for those that do is over.
  plan.train = {"/bin/sh", "-c",
                "p=\"$0/checkpoints/step-5\"; echo "
                "'{{\"schema\":\"ckptverify.event/1\",\"seq\":0,\"pid\":7,\"rank\":0,\"world\":1,"
                "\"t_mono_ns\":1,\"role\":\"trainer\",\"type\":\"save_end\",\"step\":5,\"path\":\"'"
                "\"$p\"'\"}}' "
                ">> \"$CKPTVERIFY_EVENTS\"; sleep 0.5; mkdir -p \"$p\"; echo late > \"$p/file\"; "
                "exec sleep 300",
                "{run_dir}"};
  const auto record = run_experiment(
      plan, formats(),
      {.output_directory = directory.path() / "out", .tool = built("guardian_host")});
  ASSERT_TRUE(record);
  const RunRecord& reference = record->observations.reference;
  EXPECT_THAT(reference.trace.garbled, IsEmpty());
  const auto path = directory.path() / "out/run/reference/checkpoints/step-5";
  EXPECT_TRUE(std::filesystem::exists(path / "file"));
  ASSERT_TRUE(reference.lost_save);
  EXPECT_EQ(reference.lost_save->path, path.string());
  EXPECT_EQ(reference.lost_save->why, "");
  EXPECT_EQ(reference.lost_save->files, "no file");
}

TEST(Experiment, StopsAndSaysWhyAfterAGuardianThatDoesNotObey) {
  const Directory directory;
  const std::string mark = new_mark();
  Plan plan = odd_plan("normal", mark);
  plan.deadlines.kill_s = 0.5;
  // The shell's parent is the guardian.
  plan.resume.insert(plan.resume.begin(),
                     {"/bin/sh", "-c", "kill -STOP $PPID; exec \"$0\" \"$@\""});
  const auto record = run_experiment(
      plan, formats(),
      {.output_directory = directory.path() / "out", .tool = built("guardian_host")});
  ASSERT_TRUE(record);
  EXPECT_THAT(marked_processes(mark), IsEmpty());
  EXPECT_THAT(record->observations.broken_off, HasSubstr("restored: its guardian did not obey"));
  EXPECT_FALSE(record->observations.resumed_eval);
}

TEST(Experiment, RefusesAnOutputDirectoryThatIsInUse) {
  const Directory directory;
  const Plan plan = odd_plan("normal", new_mark());
  std::filesystem::create_directories(directory.path() / "out/anything");
  const auto record = run_experiment(
      plan, formats(),
      {.output_directory = directory.path() / "out", .tool = built("guardian_host")});
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().kind, ErrorKind::kUsage);
}

TEST(Experiment, EndsWithAPartialRecordOnSigterm) {
  const Directory directory;
  const std::string mark = new_mark();
  const Plan plan = odd_plan("normal", mark);
  // Comes while the reference trains, and is taken by the thread that runs the experiment.
  const auto tell = [&](std::string_view, std::uint64_t step, std::uint64_t) {
    if (step == 3) ::pthread_kill(::pthread_self(), SIGTERM);
  };
  const auto record = run_experiment(plan, formats(),
                                     {.output_directory = directory.path() / "out",
                                      .tool = built("guardian_host"),
                                      .progress = tell});
  ASSERT_TRUE(record);
  EXPECT_EQ(record->interrupted_by, SIGTERM);
  EXPECT_EQ(record->observations.broken_off, "stopped by SIGTERM");
  EXPECT_EQ(record->phases.size(), 1U);
  EXPECT_EQ(record->observations.reference.kill, KillOutcome::kConfirmed);
  EXPECT_THAT(marked_processes(mark), IsEmpty());
}

}  // namespace
}  // namespace ckptverify
