// What compare() calls a difference, how large it says it is, and what it lets pass.
#include "ckptverify/comparison.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "src/element.h"
#include "src/matching_names.h"
#include "tests/unit/src/memory_checkpoint.h"

namespace ckptverify {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::uint64_t kFar = std::numeric_limits<std::uint64_t>::max();

Comparison comparison_of(const MemoryCheckpoint& first, const MemoryCheckpoint& second,
                         const ComparisonOptions& options = {}) {
  auto result = compare(first.build(), second.build(), options);
  EXPECT_TRUE(result) << result.error().text();
  return *std::move(result);
}

/// The one difference of two tensors, or nothing.
std::optional<Difference> difference_of(DType dtype, const std::vector<std::byte>& first,
                                        const std::vector<std::byte>& second,
                                        const Tolerance& tolerance = {}) {
  const std::uint64_t count = first.size() / dtype_size(dtype);
  MemoryCheckpoint a;
  MemoryCheckpoint b;
  a.tensor("model.w", dtype, {count}, first);
  b.tensor("model.w", dtype, {count}, second);
  const Comparison comparison = comparison_of(a, b, {.tolerance = tolerance});
  EXPECT_EQ(comparison.compared_count, 1U);
  if (comparison.equal()) return std::nullopt;
  EXPECT_EQ(comparison.differences.size(), 1U);
  return comparison.differences.front();
}

TEST(Comparison, FindsEqualCheckpointsEqual) {
  MemoryCheckpoint state;
  state.tensor("model.w", DType::kFloat32, {2}, bytes_of<float>({kNan, -0.0F}));
  state.value("step", std::int64_t{3}).value("scheduler.last", std::nan(""));
  state.node("other.object", Opaque{"a.B"});
  const Comparison comparison = comparison_of(state, state);
  EXPECT_THAT(comparison.differences, IsEmpty());
  EXPECT_EQ(comparison.compared_count, 4U);
}

TEST(Comparison, MeasuresFloatDifferences) {
  const auto difference = difference_of(DType::kFloat32, bytes_of<float>({1, 2, 3, 4}),
                                        bytes_of<float>({1, 2.5, 3, 2}));
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->kind, DifferenceKind::kValue);
  EXPECT_EQ(difference->path, "model.w");
  EXPECT_EQ(difference->component, Component::kModel);
  EXPECT_EQ(difference->first_index, 1U);
  EXPECT_EQ(difference->differing_count, 2U);
  EXPECT_EQ(difference->max_absolute, 2.0);
  EXPECT_EQ(difference->max_relative, 1.0);
  EXPECT_EQ(difference->max_ulp, std::uint64_t{1} << 23);  // 2 to 4 is one binade
  EXPECT_EQ(difference->first, "2.0");
  EXPECT_EQ(difference->second, "2.5");
}

TEST(Comparison, TellsEqualNumbersWithOtherBitsApart) {
  const auto zeros =
      difference_of(DType::kFloat64, bytes_of<double>({0.0, 1.0}), bytes_of<double>({-0.0, 1.0}));
  ASSERT_TRUE(zeros);
  EXPECT_EQ(zeros->kind, DifferenceKind::kBytes);
  EXPECT_EQ(zeros->differing_count, 1U);
  EXPECT_EQ(zeros->max_ulp, 0U);
  const auto payloads = difference_of(DType::kFloat32, bytes_of<std::uint32_t>({0x7fc00000}),
                                      bytes_of<std::uint32_t>({0x7fc00001}));
  ASSERT_TRUE(payloads);
  EXPECT_EQ(payloads->kind, DifferenceKind::kBytes);
}

TEST(Comparison, AppliesTheToleranceToTheSecond) {
  const auto a = bytes_of<float>({100.0F, 0.5F});
  const auto b = bytes_of<float>({101.0F, 0.25F});
  EXPECT_FALSE(difference_of(DType::kFloat32, a, b, {.relative = 0.01, .absolute = 0.25}));
  const auto relative_alone = difference_of(DType::kFloat32, a, b, {.relative = 0.01});
  ASSERT_TRUE(relative_alone);
  EXPECT_EQ(relative_alone->differing_count, 1U);
  EXPECT_EQ(relative_alone->first_index, 1U);
  EXPECT_EQ(relative_alone->max_absolute, 0.25);
}

TEST(Comparison, ToleratesNoNanAndNoInfinityAgainstANumber) {
  const Tolerance wide{.relative = 1e30, .absolute = 1e30};
  for (const float odd : {kNan, std::numeric_limits<float>::infinity()}) {
    const auto forth =
        difference_of(DType::kFloat32, bytes_of<float>({odd}), bytes_of<float>({1}), wide);
    ASSERT_TRUE(forth) << odd;
    EXPECT_EQ(forth->max_absolute, kInfinity);
    EXPECT_TRUE(difference_of(DType::kFloat32, bytes_of<float>({1}), bytes_of<float>({odd}), wide));
  }
  EXPECT_FALSE(difference_of(DType::kFloat32, bytes_of<std::uint32_t>({0x7fc00000}),
                             bytes_of<std::uint32_t>({0xffc00001}), wide))
      << "NaN equals NaN";
}

TEST(Comparison, MeasuresIntegersWithoutOverflow) {
  const auto difference = difference_of(
      DType::kInt64, bytes_of<std::int64_t>({std::numeric_limits<std::int64_t>::min()}),
      bytes_of<std::int64_t>({std::numeric_limits<std::int64_t>::max()}));
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->max_absolute, 18446744073709551615.0);
  EXPECT_EQ(difference->max_ulp, std::nullopt);
  EXPECT_EQ(difference->first, "-9223372036854775808");
  const auto small =
      difference_of(DType::kInt8, bytes_of<std::int8_t>({-128}), bytes_of<std::int8_t>({127}));
  EXPECT_EQ(small->max_absolute, 255.0);
  const auto large = difference_of(DType::kUint64, bytes_of<std::uint64_t>({kFar}),
                                   bytes_of<std::uint64_t>({kFar - 3}));
  EXPECT_EQ(large->max_absolute, 3.0);
}

TEST(Comparison, TakesBoolsAsTrueAndFalse) {
  const auto flipped =
      difference_of(DType::kBool, bytes_of<std::uint8_t>({0, 1}), bytes_of<std::uint8_t>({0, 0}));
  EXPECT_EQ(flipped->kind, DifferenceKind::kValue);
  EXPECT_EQ(flipped->first, "true");
  const auto odd =
      difference_of(DType::kBool, bytes_of<std::uint8_t>({1}), bytes_of<std::uint8_t>({2}));
  EXPECT_EQ(odd->kind, DifferenceKind::kBytes);
}

TEST(Comparison, MeasuresComplexNumbersInThePlane) {
  const auto difference = difference_of(DType::kComplex64, bytes_of<float>({0, 0, 1, 1}),
                                        bytes_of<float>({0, 0, 4, 5}));
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->first_index, 1U);
  EXPECT_EQ(difference->max_absolute, 5.0);
  EXPECT_EQ(difference->first, "(1.0, 1.0)");
}

TEST(Comparison, FindsTheFirstIndexAcrossThreadsAndBlocks) {
  constexpr std::size_t kCount = (std::size_t{40} << 20) + 3;  // three ranges
  std::vector<std::byte> first = patterned_bytes(kCount);
  std::vector<std::byte> second = first;
  for (const std::size_t i : {std::size_t{17} << 20, (std::size_t{33} << 20) + 1, kCount - 1}) {
    second[i] ^= std::byte{1};
  }
  for (const unsigned threads : {1U, 4U}) {
    MemoryCheckpoint a;
    MemoryCheckpoint b;
    a.tensor("model.w", DType::kUint8, {kCount}, first);
    b.tensor("model.w", DType::kUint8, {kCount}, second);
    const Comparison comparison = comparison_of(a, b, {.threads = {threads}});
    ASSERT_EQ(comparison.differences.size(), 1U);
    EXPECT_EQ(comparison.differences[0].first_index, std::size_t{17} << 20);
    EXPECT_EQ(comparison.differences[0].differing_count, 3U);
    EXPECT_EQ(comparison.differences[0].max_absolute, 1.0);
  }
}

TEST(Comparison, NamesTypesShapesAndWhatIsMissing) {
  MemoryCheckpoint a;
  MemoryCheckpoint b;
  a.tensor("model.dtype", DType::kFloat16, {2}, patterned_bytes(4));
  b.tensor("model.dtype", DType::kBfloat16, {2}, patterned_bytes(4));
  a.tensor("model.shape", DType::kInt8, {2, 3}, patterned_bytes(6));
  b.tensor("model.shape", DType::kInt8, {3, 2}, patterned_bytes(6));
  a.tensor("model.type", DType::kInt8, {1}, patterned_bytes(1));
  b.value("model.type", std::int64_t{0});
  a.value("optimizer.lost", true);
  b.value("optimizer.new", std::string("x"));
  std::vector<std::string> found;
  for (const Difference& difference : comparison_of(a, b).differences) {
    found.push_back(difference.path + ": " + std::string(difference_kind_name(difference.kind)) +
                    ": " + difference.first + " / " + difference.second);
  }
  EXPECT_THAT(
      found,
      ElementsAre("model.dtype: dtype: float16 / bfloat16", "model.shape: shape: [2, 3] / [3, 2]",
                  "model.type: type: int8 [1] / int 0", "optimizer.lost: missing: bool true / ",
                  "optimizer.new: unexpected:  / string \"x\""));
}

TEST(Comparison, KeepsIntegersAndFloatsApart) {
  MemoryCheckpoint a;
  MemoryCheckpoint b;
  a.value("scheduler.step", std::int64_t{1});
  b.value("scheduler.step", 1.0);
  const Comparison comparison = comparison_of(a, b, {.tolerance = {.absolute = 10}});
  ASSERT_EQ(comparison.differences.size(), 1U);
  EXPECT_EQ(comparison.differences[0].kind, DifferenceKind::kType);
}

TEST(Comparison, ToleratesFloatValuesAndNoIntegers) {
  MemoryCheckpoint a;
  MemoryCheckpoint b;
  a.value("scheduler.lr", 0.5).value("step", std::int64_t{5});
  b.value("scheduler.lr", 0.75).value("step", std::int64_t{6});
  const Comparison strict = comparison_of(a, b);
  ASSERT_EQ(strict.differences.size(), 2U);
  EXPECT_EQ(strict.differences[0].max_absolute, 0.25);
  const Comparison loose = comparison_of(a, b, {.tolerance = {.absolute = 10}});
  ASSERT_EQ(loose.differences.size(), 1U);
  EXPECT_EQ(loose.differences[0].path, "step");
}

TEST(Comparison, MatchesByComponentAndPathInside) {
  MemoryCheckpoint bare;
  MemoryCheckpoint rooted;
  bare.tensor("model.w", DType::kInt8, {1}, patterned_bytes(1));
  rooted.tensor("state_dict.w", DType::kInt8, {1}, patterned_bytes(1));
  const Comparison comparison = comparison_of(bare, rooted);
  EXPECT_TRUE(comparison.equal());
  EXPECT_EQ(comparison.compared_count, 1U);
}

TEST(Comparison, RenamesPathsBeforeMatching) {
  MemoryCheckpoint a;
  MemoryCheckpoint b;
  a.tensor("model.module.h.0.w", DType::kInt8, {1}, patterned_bytes(1));
  b.tensor("model.layers.0.w", DType::kInt8, {1}, patterned_bytes(1));
  EXPECT_EQ(comparison_of(a, b).differences.size(), 2U);
  const Comparison renamed =
      comparison_of(a, b, {.rules = {{"^module\\.", ""}, {"^h\\.([0-9]+)", "layers.$1"}}});
  EXPECT_TRUE(renamed.equal());
}

TEST(Comparison, RefusesABadPathRuleAsUsage) {
  const auto result =
      compare(MemoryCheckpoint().build(), MemoryCheckpoint().build(), {.rules = {{"(", ""}}});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(result.error().text(), HasSubstr("(: no regular expression"));
}

TEST(Comparison, NotesTiedTensorsThatAreStoredOnce) {
  MemoryCheckpoint tied;
  tied.tensor("model.wte", DType::kInt8, {2}, patterned_bytes(2)).alias("model.head", "model.wte");
  MemoryCheckpoint once;
  once.tensor("model.wte", DType::kInt8, {2}, patterned_bytes(2));
  MemoryCheckpoint other_name;
  other_name.tensor("model.head", DType::kInt8, {2}, patterned_bytes(2));
  const Comparison forth = comparison_of(tied, once);
  EXPECT_TRUE(forth.equal());
  EXPECT_THAT(forth.notes, ElementsAre("tied, stored once: model.head = model.wte"));
  const Comparison back = comparison_of(once, tied);
  EXPECT_TRUE(back.equal());
  EXPECT_THAT(back.notes, ElementsAre("tied, stored once: model.head = model.wte"));
  EXPECT_THAT(comparison_of(tied, other_name).notes,
              ElementsAre("tied, stored once: model.wte = model.head"));
}

TEST(Comparison, ReportsATiedTensorWhoseOnlyCopyDiffers) {
  MemoryCheckpoint tied;
  tied.tensor("model.wte", DType::kInt8, {2}, bytes_of<std::int8_t>({1, 2}));
  tied.alias("model.head", "model.wte");
  MemoryCheckpoint once;
  once.tensor("model.wte", DType::kInt8, {2}, bytes_of<std::int8_t>({1, 3}));
  const Comparison comparison = comparison_of(tied, once);
  ASSERT_EQ(comparison.differences.size(), 2U);
  EXPECT_EQ(comparison.differences[0].path, "model.head");
  EXPECT_EQ(comparison.differences[0].kind, DifferenceKind::kMissing);
  EXPECT_EQ(comparison.differences[1].kind, DifferenceKind::kValue);
  EXPECT_THAT(comparison.notes, IsEmpty());
}

TEST(Comparison, MatchesOpaqueEntriesByTypeAndCompositesByPart) {
  const auto quantized = [](double scale) {
    return std::make_shared<const Composite>(
        Composite{"quantized", {{"scale", Value(scale)}, {"axis", Value(std::int64_t{0})}}});
  };
  MemoryCheckpoint a;
  MemoryCheckpoint b;
  a.node("model.object", Opaque{"a.B"}).node("model.q", quantized(0.5));
  b.node("model.object", Opaque{"a.C"}).node("model.q", quantized(0.25));
  const Comparison comparison = comparison_of(a, b);
  ASSERT_EQ(comparison.differences.size(), 2U);
  EXPECT_EQ(comparison.differences[0].kind, DifferenceKind::kType);
  EXPECT_EQ(comparison.differences[1].path, "model.q.scale");
  EXPECT_EQ(comparison.differences[1].kind, DifferenceKind::kValue);
}

TEST(UlpDistance, CountsRepresentableNumbers) {
  const auto bits = [](float value) { return std::uint64_t{std::bit_cast<std::uint32_t>(value)}; };
  EXPECT_EQ(ulp_distance(DType::kFloat32, bits(1.0F), bits(std::nextafter(1.0F, 2.0F))), 1U);
  EXPECT_EQ(ulp_distance(DType::kFloat32, bits(0.0F), bits(-0.0F)), 0U);
  EXPECT_EQ(ulp_distance(DType::kFloat32, bits(1e-45F), bits(-1e-45F)), 2U);
  EXPECT_EQ(ulp_distance(DType::kFloat32, bits(kNan), bits(-kNan)), 0U);
  EXPECT_EQ(ulp_distance(DType::kFloat32, bits(kNan), bits(1.0F)), kFar);
  EXPECT_EQ(ulp_distance(DType::kBfloat16, 0x3f80, 0x3f82), 2U);
  EXPECT_EQ(ulp_distance(DType::kFloat8E4m3fnuz, 0x80, 0x00), kFar) << "0x80 is its NaN";
  EXPECT_EQ(ulp_distance(DType::kFloat4E2m1fnX2, 0x12, 0x52), 4U);
}

struct KnownFloat {
  DType dtype;
  std::uint64_t bits;
  double value;
};

TEST(Elements, AreTheNumbersThatTheSpecificationsSay) {
  const double quiet = std::nan("");
  for (const KnownFloat& known : {
           KnownFloat{DType::kFloat16, 0x3c00, 1.0},
           KnownFloat{DType::kFloat16, 0x0001, 0x1p-24},
           KnownFloat{DType::kFloat16, 0xfbff, -65504.0},
           KnownFloat{DType::kFloat16, 0xfc00, -kInfinity},
           KnownFloat{DType::kFloat16, 0x7c01, quiet},
           KnownFloat{DType::kBfloat16, 0x4049, 3.140625},
           KnownFloat{DType::kFloat32, 0x00000001, 0x1p-149},
           KnownFloat{DType::kFloat64, 0x3ff8000000000000, 1.5},
           KnownFloat{DType::kFloat8E4m3fn, 0x7e, 448.0},
           KnownFloat{DType::kFloat8E4m3fn, 0x01, 0x1p-9},
           KnownFloat{DType::kFloat8E4m3fn, 0xff, quiet},
           KnownFloat{DType::kFloat8E5m2, 0x7b, 57344.0},
           KnownFloat{DType::kFloat8E5m2, 0x7c, kInfinity},
           KnownFloat{DType::kFloat8E5m2, 0x7d, quiet},
           KnownFloat{DType::kFloat8E4m3fnuz, 0x7f, 240.0},
           KnownFloat{DType::kFloat8E4m3fnuz, 0x01, 0x1p-10},
           KnownFloat{DType::kFloat8E4m3fnuz, 0x80, quiet},
           KnownFloat{DType::kFloat8E5m2fnuz, 0x7f, 57344.0},
           KnownFloat{DType::kFloat8E5m2fnuz, 0x01, 0x1p-17},
           KnownFloat{DType::kFloat8E8m0fnu, 0x00, 0x1p-127},
           KnownFloat{DType::kFloat8E8m0fnu, 0xfe, 0x1p127},
           KnownFloat{DType::kFloat8E8m0fnu, 0xff, quiet},
           KnownFloat{DType::kFloat4E2m1fnX2, 0x7, 6.0},
           KnownFloat{DType::kFloat4E2m1fnX2, 0x9, -0.5},
       }) {
    const double found = float_value(*float_layout(known.dtype), known.bits);
    if (std::isnan(known.value)) {
      EXPECT_TRUE(std::isnan(found)) << dtype_name(known.dtype) << " " << known.bits;
    } else {
      EXPECT_EQ(found, known.value) << dtype_name(known.dtype) << " " << known.bits;
    }
  }
}

TEST(Comparison, MeasuresNarrowFloats) {
  const auto half = difference_of(DType::kFloat16, bytes_of<std::uint16_t>({0x3c00}),
                                  bytes_of<std::uint16_t>({0x3c01}));
  EXPECT_EQ(half->max_absolute, 0x1p-10);
  EXPECT_EQ(half->max_ulp, 1U);
  const auto eighth = difference_of(DType::kFloat8E4m3fn, bytes_of<std::uint8_t>({0x38}),
                                    bytes_of<std::uint8_t>({0x40}));
  EXPECT_EQ(eighth->max_absolute, 1.0);
  EXPECT_EQ(eighth->max_ulp, 8U);
  const auto packed = difference_of(DType::kFloat4E2m1fnX2, bytes_of<std::uint8_t>({0x21}),
                                    bytes_of<std::uint8_t>({0x31}));
  EXPECT_EQ(packed->max_absolute, 0.5);
  EXPECT_EQ(packed->first, "(0.5, 1.0)");
}

TEST(Comparison, SeesThroughWrappersPrefixesWhereItMay) {
  MemoryCheckpoint plain;
  MemoryCheckpoint wrapped;
  const auto bytes = patterned_bytes(2);
  plain.tensor("model.h.0.w", DType::kInt8, {2}, bytes).tensor("model.b", DType::kInt8, {2}, bytes);
  wrapped.tensor("model.module._orig_mod.h.0._checkpoint_wrapped_module.w", DType::kInt8, {2},
                 bytes);
  wrapped.tensor("model.b", DType::kInt8, {2}, bytes);
  EXPECT_EQ(comparison_of(plain, wrapped).differences.size(), 2U);
  const Comparison comparison = comparison_of(plain, wrapped, {.names = Names::kByMeaning});
  EXPECT_TRUE(comparison.equal());
  EXPECT_THAT(comparison.notes,
              ElementsAre("matched without wrappers' prefixes: 1 entry, such as h.0.w = "
                          "module._orig_mod.h.0._checkpoint_wrapped_module.w"));
  EXPECT_EQ(comparison.components.at("model").equal, 2U);
}

TEST(Comparison, TakesAFlatStatesKeyOfTheModelForAWrapperOnce) {
  MemoryCheckpoint whole;
  whole.tensor("net.w", DType::kFloat32, {1}, bytes_of<float>({1}));
  Checkpoint kept = whole.build();
  kept.entries[0].root_size = 0;
  MemoryCheckpoint bare;
  bare.tensor("model.w", DType::kFloat32, {1}, bytes_of<float>({1}));
  const auto comparison = compare(kept, bare.build(), {.names = Names::kByMeaning});
  ASSERT_TRUE(comparison) << comparison.error().text();
  EXPECT_THAT(comparison->differences, IsEmpty());
  EXPECT_THAT(comparison->notes, ElementsAre("matched without wrappers' prefixes: 1 entry, such as "
                                             "net.w = w"));
  EXPECT_EQ(without_wrappers("net.model.w"), "model.w");
}

TEST(Comparison, SaysOfOnePathInTwoComponentsWhereItIsFiled) {
  MemoryCheckpoint a;
  a.tensor("model.w", DType::kFloat32, {1}, bytes_of<float>({1}));
  a.value("step", std::int64_t{5});
  MemoryCheckpoint b;
  b.tensor("model.w", DType::kFloat32, {1}, bytes_of<float>({1}));
  b.value("step", std::int64_t{6});
  Checkpoint other = b.build();
  other.entries[0].root_size = 0;                  // its name is "model.w"
  other.entries[1].component = Component::kModel;  // and that of "step"
  const auto comparison = compare(a.build(), other);
  ASSERT_TRUE(comparison) << comparison.error().text();
  std::vector<std::string> texts;
  for (const Difference& difference : comparison->differences)
    texts.push_back(difference.path + ": " + std::string(difference_kind_name(difference.kind)) +
                    ": " + difference.first + " / " + difference.second);
  EXPECT_THAT(texts, ElementsAre("model.w: component: model as w / model as model.w",
                                 "step: component: step / model", "step: value: 5 / 6"));
  EXPECT_EQ(comparison->compared_count, 2U);
  EXPECT_EQ(comparison->components.at("step").missing, 0U);
  EXPECT_EQ(comparison->components.at("model").unexpected, 0U);
  EXPECT_EQ(comparison->components.at("step").differing, 1U);
}

TEST(Comparison, KeepsAModuleThatIsNoWrapper) {
  MemoryCheckpoint a;
  MemoryCheckpoint b;
  a.tensor("model.h.module.w", DType::kInt8, {2}, patterned_bytes(2));
  b.tensor("model.h.w", DType::kInt8, {2}, patterned_bytes(2));
  EXPECT_EQ(comparison_of(a, b, {.names = Names::kByMeaning}).differences.size(), 2U);
}

TEST(Comparison, DoesNotGuessWhereTwoNamesMeanOne) {
  MemoryCheckpoint a;
  MemoryCheckpoint b;
  a.tensor("model.module.w", DType::kInt8, {2}, patterned_bytes(2));
  a.tensor("model._orig_mod.w", DType::kInt8, {2}, patterned_bytes(2));
  b.tensor("model.w", DType::kInt8, {2}, patterned_bytes(2));
  EXPECT_EQ(comparison_of(a, b, {.names = Names::kByMeaning}).differences.size(), 3U);
}

TEST(Comparison, MatchesOptimizerStateByPositionAndByName) {
  MemoryCheckpoint by_position;
  MemoryCheckpoint by_name;
  const std::vector<std::string> names = {"wte.weight", "head.bias"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string index = std::to_string(i);
    const auto bytes = bytes_of<std::uint8_t>({static_cast<std::uint8_t>(i), 7});
    by_position.tensor("optimizer.state." + index + ".exp_avg", DType::kUint8, {2}, bytes);
    by_position.value("optimizer.param_groups.0.params." + index, static_cast<std::int64_t>(i));
    by_name.tensor("optimizer.state." + names[i] + ".exp_avg", DType::kUint8, {2}, bytes);
    by_name.value("optimizer.param_groups.0.params." + index, names[i]);
  }
  const Comparison exact = comparison_of(by_position, by_name);
  EXPECT_EQ(exact.differences.size(), 6U);
  for (const bool turned : {false, true}) {
    const Comparison comparison =
        comparison_of(turned ? by_name : by_position, turned ? by_position : by_name,
                      {.names = Names::kByMeaning});
    EXPECT_TRUE(comparison.equal());
    EXPECT_EQ(comparison.compared_count, 4U);
    EXPECT_EQ(comparison.components.at("optimizer").equal, 4U);
    EXPECT_THAT(comparison.notes, ElementsAre(HasSubstr("matched by position: 2 parameters")));
  }
}

TEST(Comparison, FindsByTheirBytesTiedMatricesOfWhichOneNameIsMissing) {
  MemoryCheckpoint both;
  MemoryCheckpoint once;
  const auto matrix = patterned_bytes(6);
  const std::vector<std::byte> zeros(6);
  both.tensor("model.head", DType::kInt8, {3, 2}, matrix);
  both.tensor("model.wte", DType::kInt8, {3, 2}, matrix);
  once.tensor("model.wte", DType::kInt8, {3, 2}, matrix);
  const Comparison tied = comparison_of(both, once, {.names = Names::kByMeaning});
  EXPECT_TRUE(tied.equal());
  EXPECT_THAT(tied.notes, ElementsAre("tied, stored once: model.head = model.wte"));
  EXPECT_FALSE(comparison_of(both, once).equal());
  // Two matrices of zeros are equal and not tied.
  both.tensor("model.a", DType::kInt8, {3, 2}, zeros)
      .tensor("model.b", DType::kInt8, {3, 2}, zeros);
  once.tensor("model.a", DType::kInt8, {3, 2}, zeros);
  const Comparison lost = comparison_of(both, once, {.names = Names::kByMeaning});
  ASSERT_EQ(lost.differences.size(), 1U);
  EXPECT_EQ(lost.differences[0].path, "model.b");
  EXPECT_EQ(lost.components.at("model").missing, 1U);
}

TEST(Comparison, CountsEachComponent) {
  MemoryCheckpoint a;
  MemoryCheckpoint b;
  a.tensor("model.w", DType::kInt8, {2}, bytes_of<std::int8_t>({1, 2}));
  b.tensor("model.w", DType::kInt8, {2}, bytes_of<std::int8_t>({1, 3}));
  a.value("step", std::int64_t{1}).value("config.a", true);
  b.value("step", std::int64_t{1}).value("config.b", true);
  const Comparison comparison = comparison_of(a, b);
  EXPECT_EQ(comparison.components.at("model").differing, 1U);
  EXPECT_EQ(comparison.components.at("model").first_bytes, 2U);
  EXPECT_EQ(comparison.components.at("step").equal, 1U);
  EXPECT_EQ(comparison.components.at("config").missing, 1U);
  EXPECT_EQ(comparison.components.at("config").unexpected, 1U);
}

}  // namespace
}  // namespace ckptverify
