// The table of causes: what each kind means and what a person does about it.
#include "ckptverify/cause.h"

#include <array>

namespace ckptverify {

namespace {

using enum CauseKind;

constexpr std::array kRows = {
    CauseKindRow{kSchedLost, "sched-lost",
                 "The learning-rate schedule starts over because its state was not saved or was "
                 "overwritten while loading.",
                 "Save the scheduler's state_dict and load it after both optimizer and scheduler "
                 "were built."},
    CauseKindRow{kSchedShift, "sched-shift",
                 "The schedule comes back, but one or more updates early or late.",
                 "Save only after both optimizer.step() and scheduler.step(), and count the "
                 "schedule in optimizer updates."},
    CauseKindRow{kOptLost, "opt-lost",
                 "The optimizer starts without its moments because its state was not saved or not "
                 "loaded.",
                 "Save optimizer.state_dict() and load it after the parameters are in place."},
    CauseKindRow{kOptMap, "opt-map",
                 "Optimizer state is attached to other parameters than those it was saved for.",
                 "Build the parameter groups in one fixed order, or save optimizer state by "
                 "parameter name."},
    CauseKindRow{
        kOptMeta, "opt-meta",
        "The optimizer's tensors are right, but its scalars (step, betas, weight decay, "
        "initial_lr) are not.",
        "Restore param_groups and per-parameter step counts from the checkpoint instead of "
        "the configuration."},
    CauseKindRow{
        kScaler, "scaler", "The loss scale or its growth counter is not what it was at the save.",
        "Save the gradient scaler's whole state_dict and load it before the first update."},
    CauseKindRow{kMaster, "master",
                 "The 32-bit master weights were lost, rounded through the low-precision copy or "
                 "are stale.",
                 "Save the master weights themselves and never rebuild them from the low-precision "
                 "model."},
    CauseKindRow{kRngLost, "rng-lost",
                 "The state of at least one random number generator was not saved or not restored.",
                 "Save and restore every generator that is drawn from: Python, NumPy, the CPU and "
                 "each device."},
    CauseKindRow{kRngRank, "rng-rank",
                 "A rank resumed with the random number state of another rank.",
                 "Save one random number state a rank and load it by rank."},
    CauseKindRow{kRngDrift, "rng-drift",
                 "The random number state was restored and then seeded or drawn from again before "
                 "the first batch.",
                 "Restore the generators last, after data loaders are started and nothing seeds "
                 "again."},
    CauseKindRow{kDataCursor, "data-cursor",
                 "The position in the data was not saved or not restored, so samples repeat or are "
                 "left out.",
                 "Save the number of samples consumed and skip to it on resume."},
    CauseKindRow{kDataOrder, "data-order",
                 "The position in the data is right, but counts in another order of samples.",
                 "Save the sampler's seed and epoch, and rebuild the same permutation before "
                 "skipping."},
    CauseKindRow{
        kDataMulti, "data-multi",
        "The first resume reads the right data, a later resume or the next epoch does not.",
        "Write the restored cursor back into the state that the next save reads, and clear "
        "it at the end of the epoch."},
    CauseKindRow{kStepCount, "step-count", "The step or epoch counter is off after the resume.",
                 "Save the number of completed updates and continue with the next one."},
    CauseKindRow{kAccum, "accum",
                 "A save in the middle of gradient accumulation loses gradients or skips in the "
                 "wrong unit.",
                 "Save only at the end of an accumulation window, and count micro-batches when "
                 "skipping data."},
    CauseKindRow{kEma, "ema",
                 "The averaged weights were lost, reset, or saved in place of the model.",
                 "Save the averaged weights and their update count apart from the model, and load "
                 "both."},
    CauseKindRow{kKeyMiss, "key-miss",
                 "Weights are in the checkpoint but were not applied to the model.",
                 "Load strictly, and map prefixes so that no key is missing or unexpected."},
    CauseKindRow{kTied, "tied",
                 "Parameters that share storage came back apart, or tied to another tensor.",
                 "Tie the weights again after every load, before the optimizer is built."},
    CauseKindRow{kBuffer, "buffer",
                 "A buffer or attribute that shapes the output is not part of the saved state.",
                 "Register it as a persistent buffer, or save it beside the model."},
    CauseKindRow{kValues, "values",
                 "Tensors were saved empty, partial or with values that are not finite.",
                 "Gather full parameters before the save, and stop the run when a weight is not "
                 "finite."},
    CauseKindRow{kShardMissing, "shard-missing",
                 "A shard or another required file of the checkpoint is absent.",
                 "Write all ranks' shards below one shared directory and check for them before the "
                 "commit."},
    CauseKindRow{
        kTopology, "topology",
        "The run does not come back right with another number of ranks or another "
        "parallel layout.",
        "Save in a layout that can be resharded, or refuse another world size with a clear "
        "error."},
    CauseKindRow{kHostState, "host-state",
                 "State of callbacks, such as the best metric, was lost with the restart.",
                 "Save callback state and load it before the first evaluation."},
    CauseKindRow{
        kWrongStart, "wrong-start",
        "The run started from scratch or from another checkpoint than it should, and did "
        "not say so.",
        "Fail when the named checkpoint cannot be loaded, and order checkpoints by number, "
        "not by text."},
    CauseKindRow{kTornWrite, "torn-write",
                 "A kill during the save leaves a damaged file where a good one should be.",
                 "Write to a temporary name, sync, then rename over the old file."},
    CauseKindRow{kDiskFull, "disk-full",
                 "A write failed or was cut short, and the save went on as if it had succeeded.",
                 "Check every write and close, and keep the previous checkpoint until the new one "
                 "is synced."},
    CauseKindRow{kUncommitted, "uncommitted",
                 "A resume can pick a checkpoint whose writing was never finished.",
                 "Move the pointer or write the marker only after all data is durable, and ignore "
                 "directories without it."},
    CauseKindRow{kAsyncExit, "async-exit",
                 "The process ends before its background save has finished.",
                 "Wait for outstanding saves before exiting, and save the final step."},
    CauseKindRow{kAsyncTorn, "async-torn",
                 "A background save stores values of a later or earlier step than it claims.",
                 "Copy the state before training goes on, and never reuse a cached state dict."},
    CauseKindRow{kRotation, "rotation",
                 "Rotation removes a checkpoint while no other complete one exists.",
                 "Delete old checkpoints only after the new one is complete and durable."},
    CauseKindRow{
        kSignal, "signal", "A termination signal with grace does not lead to a usable checkpoint.",
        "Look at the stop flag at every update on all ranks, and save to the usual place."},
    CauseKindRow{
        kHangFs, "hang-fs",
        "A save does not end: ranks wait for each other or for the file system.",
        "Enter collectives on all ranks, and do not depend on a shared file system showing "
        "files at once."},
    CauseKindRow{kTrunc, "trunc", "A file ends before its own structure says that it should.",
                 "Fetch or save the file again, and compare its size with the writer's."},
    CauseKindRow{kBitrot, "bitrot",
                 "Bytes inside a file that opens are not those that were written.",
                 "Restore the file from another copy, and check the storage that it lay on."},
    CauseKindRow{kImpostor, "impostor", "The file is something else under a checkpoint's name.",
                 "Download the real file (git lfs pull, or the page behind the link)."},
    CauseKindRow{kStStruct, "st-struct",
                 "A safetensors header, its data ranges or its index contradict each other.",
                 "Write the file and its index again from one state."},
    CauseKindRow{kLayout, "layout",
                 "The archive is not laid out as its format asks, so readers disagree about it.",
                 "Write it with the framework's own save, in one piece, to a new file."},
    CauseKindRow{kTensorRep, "tensor-rep",
                 "A tensor's element type, view or subclass is not represented by the file.",
                 "Save plain contiguous tensors of a type that the format knows."},
    CauseKindRow{kPickleDep, "pickle-dep", "The file can be read only with the code that wrote it.",
                 "Save state dicts of plain values and tensors instead of objects."},
    CauseKindRow{kByteNondet, "byte-nondet", "Equal content was written as different bytes.",
                 "Compare fingerprints of the content instead of hashes of the files."},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (static_cast<std::size_t>(kRows[i].kind) != i) return false;
  return true;
}

static_assert(kRows.size() == static_cast<std::size_t>(kUnknown));
static_assert(in_order());

}  // namespace

std::span<const CauseKindRow> cause_kinds() {
  return kRows;
}

std::string Cause::id() const {
  if (kind != CauseKind::kUnknown) return std::string(kRows[static_cast<std::size_t>(kind)].id);
  return "unknown(" + std::string(component_name(component.value_or(Component::kOther))) + ")";
}

}  // namespace ckptverify
