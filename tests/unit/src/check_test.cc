// The static verdict: what each check says of a clean checkpoint and of one with one fault.
#include "ckptverify/check.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/unit/src/memory_checkpoint.h"

namespace ckptverify {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

MemoryCheckpoint training_state() {
  MemoryCheckpoint state;
  state.tensor("model.w", DType::kFloat32, {2}, bytes_of<float>({1, 2}));
  state.value("optimizer.param_groups.0.lr", 0.1);
  state.value("config.layers", std::int64_t{2});
  state.value("scaler", EmptyMap{});
  return state;
}

std::vector<Finding> findings_of(const Checkpoint& checkpoint, std::string_view check,
                                 const CheckOptions& options = {}) {
  std::vector<Finding> findings = check_checkpoint(checkpoint, options);
  std::erase_if(findings, [&](const Finding& finding) { return finding.check != check; });
  return findings;
}

/// "fail opt-lost optimizer", "warn", "pass": one a finding.
std::vector<std::string> outcomes(const std::vector<Finding>& findings) {
  std::vector<std::string> texts;
  for (const Finding& finding : findings) {
    std::string text(status_name(finding.status));
    if (finding.cause) text += " " + finding.cause->id();
    if (!finding.subject.empty()) text += " " + finding.subject;
    texts.push_back(std::move(text));
  }
  return texts;
}

std::string evidence_of(const Finding& finding, std::string_view name) {
  for (const Evidence& evidence : finding.evidence) {
    if (evidence.name == name) return evidence.value;
  }
  return "no such evidence";
}

TEST(Check, PassesACleanCheckpoint) {
  const auto findings = check_checkpoint(training_state().build());
  EXPECT_EQ(verdict_of(findings), Verdict::kPass);
  std::vector<std::string> lines;
  for (const Finding& finding : findings) {
    lines.push_back(finding.check + " " + std::string(status_name(finding.status)));
  }
  EXPECT_THAT(
      lines, ElementsAre("static.readable pass", "static.interpreted pass", "static.coverage pass",
                         "static.unverifiable pass", "static.checksums not-observed",
                         "static.finite pass", "static.components warn", "static.components pass"));
  EXPECT_EQ(findings[0].message, "read as memory: 4 entries in 8 bytes of 1 file");
  EXPECT_EQ(evidence_of(findings[2], "tensor"), "8");
}

TEST(Check, FailsBytesThatNobodyOwns) {
  const auto findings = findings_of(training_state().build(3), "static.coverage");
  EXPECT_THAT(outcomes(findings), ElementsAre("fail layout memory.bin"));
  EXPECT_EQ(evidence_of(findings[0], "file"), "memory.bin");
  EXPECT_EQ(evidence_of(findings[0], "offset"), "8");
  EXPECT_EQ(evidence_of(findings[0], "size"), "3");
  EXPECT_THAT(findings[0].message, HasSubstr("found 3 such bytes in 1 range, expected 0"));
}

TEST(Check, FailsBytesThatTwoOwn) {
  Checkpoint checkpoint = training_state().build();
  checkpoint.coverage.own(
      {.range = {.offset = 6, .size = 2}, .owner = Owner::kTensor, .label = "model.b"});
  const auto findings = findings_of(checkpoint, "static.coverage");
  EXPECT_THAT(outcomes(findings), ElementsAre("fail layout memory.bin"));
  EXPECT_THAT(findings[0].message, HasSubstr("byte 6: model.b begins inside model.w"));
}

TEST(Check, ReportsGapsAndOverlapsTogether) {
  Checkpoint checkpoint = training_state().build(1);
  checkpoint.coverage.own(
      {.range = {.offset = 0, .size = 2}, .owner = Owner::kMetadata, .label = "header"});
  EXPECT_EQ(findings_of(checkpoint, "static.coverage").size(), 2U);
}

TEST(Check, WarnsOfUnverifiableBytes) {
  Checkpoint checkpoint = training_state().build(5);
  checkpoint.coverage.own(
      {.range = {.offset = 8, .size = 5}, .owner = Owner::kUnverifiable, .label = "comment"});
  const auto findings = findings_of(checkpoint, "static.unverifiable");
  EXPECT_THAT(outcomes(findings), ElementsAre("warn"));
  EXPECT_EQ(evidence_of(findings[0], "bytes"), "5");
  EXPECT_EQ(evidence_of(findings[0], "comment"), "memory.bin: byte 8, 5 bytes");
  EXPECT_EQ(verdict_of(check_checkpoint(checkpoint)), Verdict::kPass);
}

TEST(Check, GroupsUnverifiableBytesOfOneKind) {
  Checkpoint checkpoint = training_state().build(9);
  for (const std::uint64_t offset : {8U, 11U, 14U})
    checkpoint.coverage.own(
        {.range = {.offset = offset, .size = 2}, .owner = Owner::kUnverifiable, .label = "idle"});
  const auto findings = findings_of(checkpoint, "static.unverifiable");
  EXPECT_EQ(evidence_of(findings[0], "idle"),
            "6 bytes in 3 places, the first at memory.bin: byte 8, 2 bytes");
}

TEST(Check, ClaimsNothingOfACheckpointOfWhichNothingIsLeft) {
  Checkpoint checkpoint;
  checkpoint.findings.push_back({.check = "static.container",
                                 .status = Status::kFail,
                                 .cause = Cause{.kind = CauseKind::kShardMissing, .component = {}},
                                 .subject = "__1_0.distcp",
                                 .message = "file is missing"});
  EXPECT_THAT(outcomes(findings_of(checkpoint, "static.components")), ElementsAre("not-observed"));
  EXPECT_THAT(outcomes(findings_of(checkpoint, "static.interpreted")), ElementsAre("not-observed"));
  EXPECT_FALSE(check_and_fingerprint(checkpoint, {}).fingerprint);
}

TEST(Check, WarnsOfNanAndInfinityWithTheirPlace) {
  MemoryCheckpoint state = training_state();
  const float infinity = std::numeric_limits<float>::infinity();
  state.tensor("model.x", DType::kFloat32, {4}, bytes_of<float>({1, 2, -infinity, infinity}));
  state.tensor("model.y", DType::kBfloat16, {2}, bytes_of<std::uint16_t>({0x3f80, 0x7fc1}));
  const auto findings = findings_of(state.build(), "static.finite");
  EXPECT_THAT(outcomes(findings), ElementsAre("warn values model.x"));
  EXPECT_EQ(evidence_of(findings[0], "first_index"), "2");
  EXPECT_EQ(evidence_of(findings[0], "count"), "3");
  EXPECT_EQ(evidence_of(findings[0], "model.y"), "1 not finite, the first at index 1");
}

TEST(Check, FindsTheFirstNanOfManyLeaves) {
  MemoryCheckpoint state;
  std::vector<std::byte> bytes((std::size_t{3} << 20) + 8, std::byte{1});
  const auto nan = bytes_of<double>({std::numeric_limits<double>::quiet_NaN()});
  for (const std::size_t at : {(std::size_t{2} << 20) + 16, (std::size_t{1} << 20) + 8}) {
    std::copy(nan.begin(), nan.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
  }
  state.tensor("model.w", DType::kFloat64, {bytes.size() / 8}, bytes);
  const auto findings = findings_of(state.build(), "static.finite", {.threads = {4}});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(evidence_of(findings[0], "first_index"), std::to_string((1 << 20) / 8 + 1));
  EXPECT_EQ(evidence_of(findings[0], "count"), "2");
}

struct OddNumber {
  DType dtype;
  std::vector<std::byte> element;
};

TEST(Check, KnowsWhatIsNotFiniteInEveryFloatingType) {
  for (const OddNumber& odd : {
           OddNumber{DType::kFloat16, bytes_of<std::uint16_t>({0x7c00})},
           OddNumber{DType::kBfloat16, bytes_of<std::uint16_t>({0xff80})},
           OddNumber{DType::kFloat32, bytes_of<std::uint32_t>({0x7f800001})},
           OddNumber{DType::kFloat64, bytes_of<std::uint64_t>({0xfff0000000000000})},
           OddNumber{DType::kComplex32, bytes_of<std::uint16_t>({0, 0x7e00})},
           OddNumber{DType::kComplex64, bytes_of<std::uint32_t>({0, 0x7fc00000})},
           OddNumber{DType::kComplex128, bytes_of<std::uint64_t>({0x7ff0000000000000, 0})},
           OddNumber{DType::kFloat8E4m3fn, bytes_of<std::uint8_t>({0xff})},
           OddNumber{DType::kFloat8E5m2, bytes_of<std::uint8_t>({0x7c})},
           OddNumber{DType::kFloat8E4m3fnuz, bytes_of<std::uint8_t>({0x80})},
           OddNumber{DType::kFloat8E5m2fnuz, bytes_of<std::uint8_t>({0x80})},
           OddNumber{DType::kFloat8E8m0fnu, bytes_of<std::uint8_t>({0xff})},
       }) {
    MemoryCheckpoint state;
    state.tensor("model.w", odd.dtype, {1}, odd.element);
    EXPECT_THAT(outcomes(findings_of(state.build(), "static.finite")),
                ElementsAre("warn values model.w"))
        << dtype_name(odd.dtype);
  }
}

TEST(Check, TakesLargeFiniteNumbersAsFinite) {
  MemoryCheckpoint state;
  state.tensor("model.a", DType::kFloat8E4m3fn, {2}, bytes_of<std::uint8_t>({0x7e, 0x80}));
  state.tensor("model.b", DType::kFloat16, {1}, bytes_of<std::uint16_t>({0x7bff}));
  state.tensor("model.c", DType::kInt32, {1}, bytes_of<std::uint32_t>({0x7fc00000}));
  state.tensor("model.d", DType::kFloat4E2m1fnX2, {1}, bytes_of<std::uint8_t>({0xff}));
  EXPECT_THAT(outcomes(findings_of(state.build(), "static.finite")), ElementsAre("pass"));
}

TEST(Check, WarnsOfModelTensorsThatAreZeroAllOver) {
  MemoryCheckpoint state = training_state();
  state.tensor("model.dead", DType::kFloat32, {3}, bytes_of<float>({0, 0, 0}));
  state.tensor("model.single", DType::kFloat32, {1}, bytes_of<float>({0}));
  state.tensor("optimizer.state.0.exp_avg", DType::kFloat32, {2}, bytes_of<float>({0, 0}));
  const auto findings = findings_of(state.build(), "static.finite");
  EXPECT_THAT(outcomes(findings), ElementsAre("warn model.dead", "pass"));
  EXPECT_EQ(evidence_of(findings[0], "count"), "1");
}

TEST(Check, IsInconclusiveOrFailsWhereATensorCannotBeRead) {
  MemoryCheckpoint state = training_state();
  const ckptverify::Run beyond{.offset = 4, .stored_size = 64, .size = 64};
  state.node("model.torn", contiguous_tensor(DType::kUint8, {64}, beyond));
  const auto findings = findings_of(state.build(), "static.finite");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].status, Status::kFail);
}

TEST(Check, NamesTheLossOfEachRequiredComponent) {
  MemoryCheckpoint state;
  state.value("config.layers", std::int64_t{2});
  const CheckOptions options{.required = {Component::kModel, Component::kOptimizer,
                                          Component::kScheduler, Component::kScaler,
                                          Component::kStep, Component::kRng, Component::kDataCursor,
                                          Component::kEma, Component::kOther}};
  EXPECT_THAT(outcomes(findings_of(state.build(), "static.components", options)),
              ElementsAre("fail values model", "fail opt-lost optimizer",
                          "fail sched-lost scheduler", "fail scaler scaler", "fail step-count step",
                          "fail rng-lost rng", "fail data-cursor data_cursor", "fail ema ema",
                          "fail unknown(other) other", "pass"));
}

TEST(Check, TellsEmptyComponentsFromPresentOnes) {
  MemoryCheckpoint state = training_state();
  state.value("scheduler", EmptyMap{});
  const auto findings =
      findings_of(state.build(), "static.components",
                  {.required = {Component::kOptimizer, Component::kScheduler, Component::kScaler}});
  EXPECT_THAT(outcomes(findings), ElementsAre("fail sched-lost scheduler", "not-applicable scaler",
                                              "warn rng", "pass"));
  EXPECT_EQ(evidence_of(findings[0], "found"), "an empty state");
  EXPECT_EQ(evidence_of(findings.back(), "optimizer"), "1 entry");
  EXPECT_EQ(evidence_of(findings.back(), "scaler"), "empty");
  EXPECT_EQ(evidence_of(findings.back(), "rng"), "absent");
}

TEST(Check, ListsTheRanksOfAComponent) {
  MemoryCheckpoint state = training_state();
  state.value("rng.a", std::int64_t{1}).value("rng.b", std::int64_t{2});
  Checkpoint checkpoint = state.build();
  std::uint32_t rank = 0;
  for (Entry& entry : checkpoint.entries) {
    if (entry.component == Component::kRng) entry.rank = rank++;
  }
  const auto findings = findings_of(checkpoint, "static.components");
  EXPECT_EQ(evidence_of(findings.back(), "rng"), "2 entries, ranks 0-1");
}

TEST(Check, WarnsOfMissingRandomStateWhereThereIsAnOptimizer) {
  MemoryCheckpoint model;
  model.tensor("model.w", DType::kInt8, {1}, patterned_bytes(1));
  EXPECT_THAT(outcomes(findings_of(model.build(), "static.components")), ElementsAre("pass"));
  EXPECT_THAT(
      outcomes(findings_of(model.build(), "static.components", {.required = {Component::kConfig}})),
      ElementsAre("fail unknown(config) config", "pass"));
  model.tensor("optimizer.m", DType::kInt8, {1}, patterned_bytes(1));
  EXPECT_THAT(outcomes(findings_of(model.build(), "static.components")),
              ElementsAre("warn rng", "pass"));
  EXPECT_THAT(
      outcomes(findings_of(model.build(), "static.components", {.required = {Component::kRng}})),
      ElementsAre("fail rng-lost rng", "pass"));
  model.value("rng.python", std::int64_t{1});
  EXPECT_THAT(outcomes(findings_of(model.build(), "static.components")), ElementsAre("pass"));
}

TEST(Check, IsInconclusiveWhereSomethingWasNotInterpreted) {
  MemoryCheckpoint state = training_state();
  state.node("other.object", Opaque{"module.Class"});
  Checkpoint checkpoint = state.build();
  checkpoint.uninterpreted = {"data.pkl: persistent id of kind x"};
  const auto findings = findings_of(checkpoint, "static.interpreted");
  EXPECT_THAT(outcomes(findings),
              ElementsAre("inconclusive data.pkl: persistent id of kind x", "warn"));
  EXPECT_EQ(evidence_of(findings[1], "module.Class"), "1");
  EXPECT_EQ(verdict_of(check_checkpoint(checkpoint)), Verdict::kInconclusive);
}

TEST(Check, PassesTheReadersFindingsOn) {
  Checkpoint checkpoint = training_state().build();
  checkpoint.findings = {{.check = "format.pointer",
                          .status = Status::kFail,
                          .cause = Cause{.kind = CauseKind::kUncommitted, .component = {}},
                          .message = "the pointer names nothing"}};
  const auto findings = check_checkpoint(checkpoint);
  EXPECT_EQ(findings.back().check, "format.pointer");
  EXPECT_EQ(verdict_of(findings), Verdict::kFail);
}

TEST(Check, NeverStopsEarly) {
  MemoryCheckpoint state;
  state.tensor("model.w", DType::kFloat32, {1},
               bytes_of<float>({std::numeric_limits<float>::quiet_NaN()}));
  Checkpoint checkpoint = state.build(4);
  checkpoint.uninterpreted = {"x"};
  StoredChecksum& checksum = checkpoint.checksums.emplace_back();
  checksum.subject = "w";
  checksum.run = {.offset = 0, .stored_size = 4, .size = 4};
  checksum.algorithm = "size";
  checksum.expected = "5";
  checksum.compute = [](Bytes bytes) { return std::to_string(bytes.size()); };
  const auto findings = check_checkpoint(checkpoint, {.required = {Component::kOptimizer}});
  std::vector<std::string> causes;
  for (const RankedCause& ranked : rank_causes(findings)) causes.push_back(ranked.cause.id());
  EXPECT_THAT(causes, ElementsAre("layout", "bitrot"));
  EXPECT_THAT(
      outcomes(findings_of(checkpoint, "static.components", {.required = {Component::kOptimizer}})),
      ElementsAre("inconclusive optimizer", "pass"));
  EXPECT_THAT(outcomes(findings_of(checkpoint, "static.finite")),
              ElementsAre("warn values model.w"));
}

TEST(Check, ClaimsNoLossWhereAPartCouldNotBeRead) {
  Checkpoint checkpoint = training_state().build();
  checkpoint.findings.push_back({.check = "static.container",
                                 .status = Status::kFail,
                                 .cause = Cause{.kind = CauseKind::kShardMissing},
                                 .subject = "shard-2",
                                 .message = "shard-2: is not there"});
  const auto findings =
      findings_of(checkpoint, "static.components", {.required = {Component::kRng}});
  EXPECT_THAT(outcomes(findings), ElementsAre("inconclusive rng", "pass"));
  EXPECT_EQ(evidence_of(findings[0], "unread"), "shard-2");
  EXPECT_EQ(evidence_of(findings[1], "rng"), "not in what could be read");
}

TEST(Check, NamesTheGeneratorsAndTheRanksThatLackOne) {
  MemoryCheckpoint state = training_state();
  state.value("rng.python.0", std::int64_t{1}).value("rng.numpy.0", std::int64_t{2});
  state.value("rng.cuda.0", std::int64_t{3}).value("rng.torch.0", std::int64_t{4});
  Checkpoint checkpoint = state.build();
  for (Entry& entry : checkpoint.entries) {
    if (entry.component == Component::kRng) entry.rank = entry.path == "rng.cuda.0" ? 0 : 3;
  }
  const auto findings = findings_of(checkpoint, "static.components");
  EXPECT_EQ(evidence_of(findings.back(), "rng"),
            "4 entries of cuda, numpy, python, torch cpu, ranks 0, 3");
  EXPECT_THAT(findings.back().message, HasSubstr("rng (cuda, numpy, python, torch cpu)"));
  ASSERT_EQ(findings.size(), 6U);
  EXPECT_EQ(findings[0].message, "rng: some ranks have no state; found ranks 0, 3, expected 0-3");
  EXPECT_EQ(findings[1].message,
            "rng: only some ranks have the state of cuda; found ranks 0 of 0, 3");
}

TEST(Check, FailsWhatIsNotFiniteWhereThatIsAskedFor) {
  MemoryCheckpoint state;
  state.tensor("model.w", DType::kFloat32, {1},
               bytes_of<float>({std::numeric_limits<float>::infinity()}));
  state.tensor("model.z", DType::kFloat32, {2}, bytes_of<float>({0, 0}));
  EXPECT_THAT(
      outcomes(findings_of(state.build(), "static.finite", {.not_finite = NotFinite::kFail})),
      ElementsAre("fail values model.w", "fail values model.z"));
}

TEST(Check, GivesTheFingerprintOfTheSamePass) {
  const Checkpoint checkpoint = training_state().build();
  const CheckResult result = check_and_fingerprint(checkpoint);
  ASSERT_TRUE(result.fingerprint);
  EXPECT_EQ(result.fingerprint->whole, fingerprint(checkpoint)->whole);
}

}  // namespace
}  // namespace ckptverify
