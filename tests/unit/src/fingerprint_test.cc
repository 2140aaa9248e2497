// The fingerprint against vectors that somebody else computed from docs/fingerprint.md alone, and
// its promises: no dependence on threads or layout, and no bit that it overlooks.
#include "ckptverify/fingerprint.h"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "ckptverify/json.h"
#include "tests/unit/src/memory_checkpoint.h"

namespace ckptverify {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// ---- The vectors of the blind implementation ----

std::string string_member(const Json& item, std::string_view key) {
  const Json* member = item.find(key);
  return member != nullptr && member->string() != nullptr ? *member->string() : std::string();
}

std::uint64_t integer_member(const Json& item, std::string_view key) {
  return item.find(key)->unsigned_integer().value();
}

std::vector<std::byte> from_hex(std::string_view hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 2 <= hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

std::vector<std::byte> data_of(const Json& data) {
  if (data.string() != nullptr) return from_hex(*data.string());
  const std::uint64_t multiplier = integer_member(data, "mul");
  const std::uint64_t added = integer_member(data, "add");
  const std::uint64_t modulus = integer_member(data, "mod");
  std::vector<std::byte> bytes(integer_member(data, "size"));
  for (std::uint64_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>((i * multiplier + added) % modulus);
  }
  return bytes;
}

std::vector<std::uint64_t> shape_of(const Json& item) {
  std::vector<std::uint64_t> shape;
  for (const Json& dimension : *item.find("shape")->array()) {
    shape.push_back(dimension.unsigned_integer().value());
  }
  return shape;
}

/// The magnitude of a decimal number, big-endian without leading zeros.
std::vector<std::byte> magnitude_of(std::string_view digits) {
  std::vector<std::byte> bytes;  // little-endian while it grows
  for (const char digit : digits) {
    unsigned carry = static_cast<unsigned>(digit - '0');
    for (std::byte& byte : bytes) {
      carry += std::to_integer<unsigned>(byte) * 10;
      byte = static_cast<std::byte>(carry & 0xff);
      carry >>= 8;
    }
    if (carry != 0) bytes.push_back(static_cast<std::byte>(carry));
  }
  return {bytes.rbegin(), bytes.rend()};
}

Value integer_of(const std::string& text) {
  std::int64_t small = 0;
  std::istringstream in(text);
  if (in >> small) return Value(small);
  const bool negative = text.front() == '-';
  return BigInteger{negative, magnitude_of(std::string_view(text).substr(negative ? 1 : 0))};
}

Value value_of(const Json& item) {
  const std::string type = string_member(item, "type");
  const std::string text = string_member(item, "value");
  if (type == "null") return Null{};
  if (type == "bool") return *item.find("value")->boolean();
  if (type == "int") return integer_of(text);
  if (type == "float") return std::bit_cast<double>(std::stoull(text, nullptr, 16));
  const std::vector<std::byte> bytes = from_hex(text);
  if (type == "string") return std::string(as_text(bytes));
  if (type == "bytes") return ByteString{bytes};
  EXPECT_TRUE(item.find("value")->array()->empty()) << type;
  if (type == "list") return EmptyList{};
  EXPECT_EQ(type, "map");
  return EmptyMap{};
}

Digest digest_of(const Json& item);

std::vector<std::pair<std::string, Digest>> named_digests(const Json& list, const char* name) {
  std::vector<std::pair<std::string, Digest>> digests;
  for (const Json& item : *list.array()) {
    digests.emplace_back(string_member(item, name), digest_of(item));
  }
  return digests;
}

Digest digest_of(const Json& item) {
  const std::string kind = string_member(item, "kind");
  const std::string dtype = string_member(item, "dtype");
  if (kind == "tensor") return tensor_digest(dtype, shape_of(item), data_of(*item.find("data")));
  if (kind == "absent") return absent_tensor_digest(dtype, shape_of(item));
  if (kind == "value") return value_digest(value_of(item));
  if (kind == "node") {
    return composite_digest(string_member(item, "node_kind"),
                            named_digests(*item.find("parts"), "name"));
  }
  if (kind == "checkpoint") {
    return checkpoint_digest(named_digests(*item.find("components"), "label"));
  }
  EXPECT_EQ(kind, "component");
  Json::Array entries;
  for (const Json& entry : *item.find("entries")->array()) {
    const bool wanted =
        string_member(item, "of") == "all" || string_member(entry, "kind") != "value";
    if (wanted) entries.push_back(entry);
  }
  return component_digest(named_digests(Json(entries), "path"));
}

TEST(FingerprintVectors, AgreeWithAnImplementationWrittenBlind) {
  std::ifstream file(CKPTVERIFY_SOURCE "/tests/unit/src/fingerprint_vectors.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto json = Json::parse(text);
  ASSERT_TRUE(json) << json.error().text();
  const Json::Array& vectors = *json->find("vectors")->array();
  EXPECT_GE(vectors.size(), 60U);
  for (const Json& vector : vectors) {
    EXPECT_EQ(digest_of(vector).text(), string_member(vector, "digest"))
        << string_member(vector, "name");
  }
}

// ---- The digests ----

TEST(Digest, IsReadBackFromItsText) {
  const Digest digest = hash_bytes(as_bytes("abc"));
  EXPECT_EQ(digest.text(), "ckv1:" + digest.hex());
  EXPECT_EQ(digest_from_hex(digest.hex()), digest);
}

TEST(Digest, RefusesTextThatIsNoDigest) {
  const std::string hex = hash_bytes({}).hex();
  EXPECT_EQ(digest_from_hex(hex.substr(1)), std::nullopt);
  EXPECT_EQ(digest_from_hex(hex + "0"), std::nullopt);
  EXPECT_EQ(digest_from_hex("G" + hex.substr(1)), std::nullopt);
  EXPECT_EQ(digest_from_hex("A" + hex.substr(1)), std::nullopt) << "capitals are not our text";
}

// ---- The fingerprint of a checkpoint ----

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

MemoryCheckpoint training_state() {
  MemoryCheckpoint state;
  state.tensor("model.large", DType::kFloat32, {3 * kMebibyte / 4 + 5},
               patterned_bytes(3 * kMebibyte + 20));
  state.tensor("model.scalar", DType::kInt64, {}, bytes_of<std::int64_t>({7}));
  state.tensor("model.nothing", DType::kFloat32, {0, 3}, {});
  state.tensor("optimizer.state.0.exp_avg", DType::kBfloat16, {2, 2},
               bytes_of<std::uint16_t>({1, 2, 3, 4}));
  state.value("optimizer.param_groups.0.lr", 0.1);
  state.value("step", std::int64_t{5});
  return state;
}

Fingerprint fingerprint_of(const Checkpoint& checkpoint, unsigned threads = 2) {
  auto result = fingerprint(checkpoint, {threads});
  EXPECT_TRUE(result) << result.error().text();
  return *std::move(result);
}

TEST(Fingerprint, IsTheSameForAnyNumberOfThreads) {
  const Checkpoint checkpoint = training_state().build();
  const Fingerprint one = fingerprint_of(checkpoint, 1);
  for (const unsigned threads : {2U, 4U, 9U}) {
    const Fingerprint many = fingerprint_of(checkpoint, threads);
    EXPECT_EQ(many.whole, one.whole) << threads;
    EXPECT_EQ(many.entries, one.entries) << threads;
  }
}

TEST(Fingerprint, JoinsWhatTheDigestFunctionsSay) {
  const Checkpoint checkpoint = training_state().build();
  const Fingerprint found = fingerprint_of(checkpoint);
  const Digest large = tensor_digest("float32", std::array{std::uint64_t{3 * kMebibyte / 4 + 5}},
                                     patterned_bytes(3 * kMebibyte + 20));
  const Digest scalar = tensor_digest("int64", {}, bytes_of<std::int64_t>({7}));
  const Digest nothing = tensor_digest("float32", std::array<std::uint64_t, 2>{0, 3}, {});
  const Digest model =
      component_digest({{"scalar", scalar}, {"large", large}, {"nothing", nothing}});
  const Digest moment = tensor_digest("bfloat16", std::array<std::uint64_t, 2>{2, 2},
                                      bytes_of<std::uint16_t>({1, 2, 3, 4}));
  const Digest optimizer =
      component_digest({{"state.0.exp_avg", moment}, {"param_groups.0.lr", value_digest(0.1)}});
  const Digest step = component_digest({{"step", value_digest(std::int64_t{5})}});
  EXPECT_EQ(found.components.at("model").all, model);
  EXPECT_EQ(found.components.at("model").tensors, model);
  EXPECT_EQ(found.components.at("model").tensor_bytes, 3 * kMebibyte + 28);
  EXPECT_EQ(found.components.at("optimizer").all, optimizer);
  EXPECT_EQ(found.components.at("optimizer").tensors,
            component_digest({{"state.0.exp_avg", moment}}));
  EXPECT_EQ(found.components.at("optimizer").entry_count, 2U);
  EXPECT_EQ(found.whole,
            checkpoint_digest({{"step", step}, {"optimizer", optimizer}, {"model", model}}));
}

TEST(Fingerprint, IsThatOfTheExampleInTheDocumentation) {
  MemoryCheckpoint state;
  state.tensor("model.w", DType::kFloat32, {2}, bytes_of<float>({1, -2}));
  state.value("step", std::int64_t{5});
  const std::string text = fingerprint_of(state.build()).whole.text();
  EXPECT_EQ(text, "ckv1:ccff7d72bc10369dcb327d095409e8db");
  std::ifstream file(CKPTVERIFY_SOURCE "/docs/fingerprint.md");
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(file), {}), HasSubstr(text));
}

TEST(Fingerprint, DoesNotDependOnHowATensorIsSplit) {
  const std::vector<std::byte> bytes = patterned_bytes(24);
  MemoryCheckpoint whole;
  whole.tensor("model.w", DType::kUint16, {3, 4}, bytes);

  // Columns 2 and 3 first, each piece row-major for itself; then columns 0 and 1.
  MemoryCheckpoint split;
  Tensor tensor{.dtype = DType::kUint16, .shape = {3, 4}, .pieces = {}};
  for (const std::uint64_t column : {std::uint64_t{2}, std::uint64_t{0}}) {
    std::vector<std::byte> half;
    for (std::size_t row = 0; row < 3; ++row) {
      const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(row * 8 + column * 2);
      half.insert(half.end(), from, from + 4);
    }
    tensor.pieces.push_back({.offset = {0, column},
                             .shape = {3, 2},
                             .strides = {2, 1},
                             .run = split.store("model.w", half)});
  }
  split.node("model.w", tensor);

  // The transposed elements, read through strides.
  MemoryCheckpoint strided;
  std::vector<std::byte> transposed;
  for (std::size_t column = 0; column < 4; ++column) {
    for (std::size_t row = 0; row < 3; ++row) {
      const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(row * 8 + column * 2);
      transposed.insert(transposed.end(), from, from + 2);
    }
  }
  strided.node("model.w", Tensor{.dtype = DType::kUint16,
                                 .shape = {3, 4},
                                 .pieces = {{.offset = {0, 0},
                                             .shape = {3, 4},
                                             .strides = {1, 3},
                                             .run = strided.store("model.w", transposed)}}});

  const Digest expected = fingerprint_of(whole.build()).whole;
  EXPECT_EQ(fingerprint_of(split.build()).whole, expected);
  EXPECT_EQ(fingerprint_of(strided.build()).whole, expected);
}

TEST(Fingerprint, SeesEveryFlippedByte) {
  MemoryCheckpoint state;
  state.tensor("model.w", DType::kFloat32, {60}, patterned_bytes(240));
  state.tensor("model.b", DType::kInt8, {17}, patterned_bytes(17));
  const Digest clean = fingerprint_of(state.build()).whole;
  for (std::size_t i = 0; i < state.file().size(); ++i) {
    state.file()[i] ^= std::byte{1};
    EXPECT_NE(fingerprint_of(state.build(), 1).whole, clean) << "byte " << i;
    state.file()[i] ^= std::byte{1};
  }
  EXPECT_EQ(fingerprint_of(state.build()).whole, clean);
}

TEST(Fingerprint, SeesAFlippedByteOnBothSidesOfALeaf) {
  MemoryCheckpoint state;
  state.tensor("model.w", DType::kUint8, {2 * kMebibyte + 1}, patterned_bytes(2 * kMebibyte + 1));
  const Digest clean = fingerprint_of(state.build()).whole;
  for (const std::size_t i : {kMebibyte - 1, kMebibyte, 2 * kMebibyte - 1, 2 * kMebibyte}) {
    state.file()[i] ^= std::byte{0x80};
    EXPECT_NE(fingerprint_of(state.build()).whole, clean) << "byte " << i;
    state.file()[i] ^= std::byte{0x80};
  }
}

TEST(Fingerprint, HashesAliasesUnderEachPath) {
  MemoryCheckpoint tied;
  tied.tensor("model.wte", DType::kUint8, {4}, patterned_bytes(4)).alias("model.head", "model.wte");
  MemoryCheckpoint twice;
  twice.tensor("model.wte", DType::kUint8, {4}, patterned_bytes(4));
  twice.tensor("model.head", DType::kUint8, {4}, patterned_bytes(4));
  EXPECT_EQ(fingerprint_of(tied.build()).whole, fingerprint_of(twice.build()).whole);
}

TEST(Fingerprint, LeavesOpaqueEntriesOutAndHashesComposites) {
  const Tensor absent{.dtype = DType::kFloat32, .shape = {2}, .pieces = {}, .absent = true};
  const Composite composite{"quantized",
                            {{"scale", Value(0.5)}, {"object", Opaque{"a.B"}}, {"data", absent}}};
  MemoryCheckpoint state;
  state.node("model.q", std::make_shared<const Composite>(composite));
  state.node("model.object", Opaque{"a.B"});
  const Fingerprint found = fingerprint_of(state.build());
  const std::array<std::uint64_t, 1> shape = {2};
  const Digest expected = composite_digest(
      "quantized",
      {{"data", absent_tensor_digest("float32", shape)}, {"scale", value_digest(0.5)}});
  EXPECT_THAT(found.entries, ElementsAre(std::nullopt, expected));
  EXPECT_EQ(found.components.at("model").tensors, component_digest({{"q", expected}}));
  EXPECT_EQ(found.components.at("model").entry_count, 1U);
}

TEST(Fingerprint, NamesComponentsOfARank) {
  MemoryCheckpoint state;
  state.value("rng.state", std::int64_t{1});
  Checkpoint checkpoint = state.build();
  checkpoint.entries[0].rank = 3;
  EXPECT_EQ(fingerprint_of(checkpoint).components.begin()->first, "rng.3");
}

TEST(Fingerprint, NamesTheTensorThatCannotBeRead) {
  MemoryCheckpoint state;
  const ckptverify::Run run{.offset = 0, .stored_size = 64, .size = 64};
  state.node("model.w", contiguous_tensor(DType::kUint8, {64}, run));
  const auto result = fingerprint(state.build());
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().text(), HasSubstr("memory.bin"));
}

// ---- Stored checksums ----

std::string digest_text(Bytes bytes) {
  return hash_bytes(bytes).hex();
}

StoredChecksum checksum_of(const Run& run, Bytes bytes) {
  return {.subject = "record " + std::to_string(run.offset),
          .run = run,
          .algorithm = "xxh3-128",
          .expected = digest_text(bytes),
          .compute = digest_text};
}

TEST(Checksums, AreNotObservedWhereThereAreNone) {
  const auto findings = verify_checksums(MemoryCheckpoint().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].status, Status::kNotObserved);
}

TEST(Checksums, AreCountedWhenRightAndNamedWhenWrong) {
  MemoryCheckpoint state;
  std::vector<StoredChecksum> checksums;
  for (int i = 0; i < 3; ++i) {
    const std::vector<std::byte> bytes = patterned_bytes(8);
    const auto run = state.store("record", bytes);
    checksums.push_back(checksum_of(run, bytes));
  }
  Checkpoint clean = state.build();
  clean.checksums = checksums;
  auto findings = verify_checksums(clean);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].status, Status::kPass);
  EXPECT_EQ(findings[0].message, "3 of 3 stored checksums are right, by xxh3-128");

  state.file()[9] ^= std::byte{4};
  Checkpoint damaged = state.build();
  damaged.checksums = checksums;
  findings = verify_checksums(damaged);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].status, Status::kFail);
  EXPECT_EQ(findings[0].cause->id(), "bitrot");
  EXPECT_EQ(findings[0].subject, "record 8");
  EXPECT_EQ(findings[0].evidence[1].value,
            digest_text(stored_bytes(damaged, checksums[1].run)->first(8)));
  EXPECT_EQ(findings[0].evidence[2].value, checksums[1].expected);
  EXPECT_EQ(findings[1].message, "2 of 3 stored checksums are right, by xxh3-128");
}

TEST(Checksums, CoverATensorsLogicalBytes) {
  MemoryCheckpoint state;
  const auto run = state.store("model.w", bytes_of<std::uint8_t>({1, 3, 2, 4}));
  state.node(
      "model.w",
      Tensor{.dtype = DType::kUint8,
             .shape = {2, 2},
             .pieces = {{.offset = {0, 0}, .shape = {2, 2}, .strides = {1, 2}, .run = run}}});
  Checkpoint checkpoint = state.build();
  StoredChecksum checksum = checksum_of({}, bytes_of<std::uint8_t>({1, 2, 3, 4}));
  checksum.entry = "model.w";
  checkpoint.checksums = {checksum};
  EXPECT_EQ(verify_checksums(checkpoint).at(0).status, Status::kPass);
  checkpoint.checksums[0].expected = checksum_of({}, bytes_of<std::uint8_t>({1, 3, 2, 4})).expected;
  EXPECT_EQ(verify_checksums(checkpoint).at(0).status, Status::kFail);
}

}  // namespace
}  // namespace ckptverify
