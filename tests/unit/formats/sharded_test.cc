// Sharded directories: what each kind of damage is called, and that no byte goes unnoticed.
#include "formats/sharded.h"

#include "formats/sharded_index.h"
#include "tests/unit/formats/format_fixture.h"

namespace ckptverify {
namespace {

using fixture::FileBytes;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Directory = std::map<std::string, FileBytes>;

constexpr const char* kShard0 = "shard-00000-of-00002.safetensors";
constexpr const char* kShard1 = "shard-00001-of-00002.safetensors";
constexpr const char* kTinyHdf5 = "shard-00000-of-00001.h5";

Directory load(const std::string& kind) {
  Directory directory;
  for (const auto& file :
       std::filesystem::directory_iterator(fixture::good("sharded/good/" + kind + "/step-5")))
    directory[file.path().filename()] = fixture::read_file(file.path());
  return directory;
}

FileBytes bytes_of(std::string_view text) {
  const Bytes bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

/// Replaces a text of the index and makes its digest right again: a writer's mistake, not damage.
void rewrite_index(Directory& directory, const std::string& from, const std::string& to) {
  std::string text(as_text(directory.at("index.json")));
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  directory["index.json"] = bytes_of(text);
  directory["index.json.xxh3"] = bytes_of(hash_bytes(directory["index.json"]).hex() + "\n");
}

Result<Checkpoint> read(Directory directory, const std::string& name = "run/step-5") {
  return formats().read(Source::memory_directory(name, std::move(directory)));
}

/// The only failing finding; reports how many there are otherwise.
Finding only_failure(const Result<Checkpoint>& checkpoint) {
  EXPECT_TRUE(checkpoint) << checkpoint.error().text();
  std::vector<Finding> bad;
  if (checkpoint)
    std::copy_if(checkpoint->findings.begin(), checkpoint->findings.end(), std::back_inserter(bad),
                 fixture::is_bad);
  EXPECT_EQ(bad.size(), 1U);
  return bad.empty() ? Finding{} : bad.front();
}

void expect_failure(const Result<Checkpoint>& checkpoint, const std::string& cause,
                    const std::string& message) {
  const Finding finding = only_failure(checkpoint);
  ASSERT_TRUE(finding.cause);
  EXPECT_EQ(finding.cause->id(), cause);
  EXPECT_THAT(finding.message, HasSubstr(message));
}

void expect_error(const Result<Checkpoint>& checkpoint, const std::string& cause,
                  const std::string& text) {
  ASSERT_FALSE(checkpoint);
  EXPECT_EQ(fixture::cause_of(checkpoint.error()), cause);
  EXPECT_THAT(checkpoint.error().text(), HasSubstr(text));
}

class ShardedReads : public testing::TestWithParam<std::string> {};

TEST_P(ShardedReads, WhatTheOracleSays) {
  const auto source = Source::open(fixture::good("sharded/good/" + GetParam() + "/step-5"));
  ASSERT_TRUE(source);
  const auto checkpoint = formats().read(*source);
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_EQ(checkpoint->format, "sharded");
  EXPECT_THAT(checkpoint->findings, IsEmpty());
  fixture::expect_oracle(*checkpoint, fixture::good("sharded/good/" + GetParam() + "/oracle.json"));
  fixture::expect_whole_coverage(*checkpoint);
  EXPECT_EQ(checkpoint->coverage.size(Owner::kUnverifiable), 0U);
  for (const Finding& finding : verify_checksums(*checkpoint))
    EXPECT_EQ(finding.status, Status::kPass) << finding.message;
}

INSTANTIATE_TEST_SUITE_P(Kinds, ShardedReads,
                         testing::Values("hdf5", "safetensors", "hdf5_tiny", "safetensors_tiny"),
                         [](const auto& row) { return row.param; });

TEST(Sharded, HasTheSameFingerprintWhateverTheShardsAre) {
  const auto hdf5 = read(load("hdf5"));
  const auto safetensors = read(load("safetensors"));
  ASSERT_TRUE(hdf5 && safetensors);
  EXPECT_EQ(fingerprint(*hdf5)->whole, fingerprint(*safetensors)->whole);
}

TEST(Sharded, WalksValuesAndGivesEntriesTheirComponents) {
  const auto checkpoint = read(load("safetensors"));
  ASSERT_TRUE(checkpoint);
  const auto value = [&](std::string_view path) {
    return std::get<Value>(find_entry(*checkpoint, path)->node);
  };
  EXPECT_EQ(value("step"), Value(std::int64_t{5}));
  EXPECT_EQ(value("optimizer.param_groups.0.betas.1"), Value(0.95));
  EXPECT_EQ(value("optimizer.param_groups.0.fused"), Value(Null{}));
  EXPECT_EQ(value("scheduler.warm"), Value(EmptyMap{}));
  EXPECT_EQ(value("scheduler.milestones"), Value(EmptyList{}));
  EXPECT_EQ(value("config.big"),
            Value(BigInteger{.magnitude = std::vector<std::byte>(8, std::byte{0xff})}));
  EXPECT_EQ(find_entry(*checkpoint, "model.head.weight")->alias_of, "model.wte.weight");
  EXPECT_EQ(find_entry(*checkpoint, "rng.torch")->component, Component::kRng);
  EXPECT_EQ(find_entry(*checkpoint, "data_cursor.order")->component, Component::kDataCursor);
}

TEST(Sharded, NamesAMissingShardAndWhatWasInIt) {
  Directory directory = load("safetensors");
  directory.erase(kShard1);
  const auto checkpoint = read(std::move(directory));
  const Finding finding = only_failure(checkpoint);
  EXPECT_EQ(finding.cause->id(), "shard-missing");
  EXPECT_EQ(finding.message,
            std::string(kShard1) + ": shard is missing; found no file, expected 348 bytes");
  EXPECT_EQ(finding.evidence[0].value, "4");
  EXPECT_EQ(finding.evidence[1].value, "model.h.0.bias");
}

TEST(Sharded, CallsAShortShardTruncatedAndALongOneALayoutFault) {
  Directory directory = load("safetensors");
  directory[kShard0].pop_back();
  expect_failure(read(directory), "trunc",
                 "byte 511: file is cut short; found 511 bytes, expected 512");
  directory = load("safetensors");
  directory[kShard0].resize(515);
  expect_failure(read(directory), "layout",
                 "byte 512: bytes follow the shard; found 515 bytes, expected 512");
}

TEST(Sharded, NamesTheShardWhoseDigestIsWrongAndStillReadsIt) {
  Directory directory = load("safetensors");
  directory[kShard0][500] ^= std::byte{0x04};
  const auto checkpoint = read(std::move(directory));
  const Finding finding = only_failure(checkpoint);
  EXPECT_EQ(finding.cause->id(), "bitrot");
  EXPECT_EQ(finding.subject, kShard0);
  EXPECT_THAT(finding.message, HasSubstr("XXH3-128 of the file is wrong; found "));
  EXPECT_NE(find_entry(*checkpoint, "model.wte.weight"), nullptr);
}

TEST(Sharded, DoesNotOpenADamagedHdf5Shard) {
  Directory directory = load("hdf5_tiny");
  const std::uint64_t size = directory[kTinyHdf5].size();
  directory[kTinyHdf5][size - 1] ^= std::byte{0x01};
  const auto checkpoint = read(std::move(directory));
  expect_failure(checkpoint, "bitrot", "XXH3-128 of the file is wrong");
  EXPECT_EQ(find_entry(*checkpoint, "model.wte.weight"), nullptr);
  const auto owned = checkpoint->coverage.sorted().back();
  EXPECT_EQ(owned.label, "damaged shard, not opened");
  EXPECT_EQ(owned.range.size, size);
}

TEST(Sharded, NamesEveryDisagreementBetweenIndexAndShards) {
  const std::string bias = R"("model.h.0.bias": {"shard": 1, "dtype": "bfloat16", "shape": [4]})";
  struct Case {
    std::string to;
    std::string message;
  };
  for (const Case& wrong :
       {Case{R"("model.h.0.bias": {"shard": 0, "dtype": "bfloat16", "shape": [4]})",
             "model.h.0.bias: lies in another shard than the index says; found "
             "shard-00001-of-00002.safetensors, expected shard-00000-of-00002.safetensors"},
        Case{R"("model.h.0.bias": {"shard": 1, "dtype": "float16", "shape": [4]})",
             "model.h.0.bias: has another dtype than the index says; found bfloat16, expected "
             "float16"},
        Case{R"("model.h.0.bias": {"shard": 1, "dtype": "bfloat16", "shape": [2, 2]})",
             "model.h.0.bias: has another shape than the index says; found [4], expected [2, 2]"},
        Case{bias + R"(, "model.extra": {"shard": 1, "dtype": "bool", "shape": []})",
             "model.extra: is not in its shard; found nothing, expected it in "
             "shard-00001-of-00002.safetensors"}}) {
    Directory directory = load("safetensors");
    rewrite_index(directory, bias, wrong.to);
    expect_failure(read(std::move(directory)), "st-struct", wrong.message);
  }
  Directory directory = load("safetensors");
  rewrite_index(directory, bias + ", ", "");
  expect_failure(
      read(std::move(directory)), "st-struct",
      "model.h.0.bias: is not in the index; found it in shard-00001-of-00002.safetensors");
}

TEST(Sharded, NamesAFileThatIsNotInTheIndex) {
  Directory directory = load("safetensors");
  directory["shard-00002-of-00003.safetensors"] = FileBytes(3);
  expect_failure(read(std::move(directory)), "layout",
                 "shard-00002-of-00003.safetensors: file is not in the index");
}

TEST(Sharded, CallsWhatWasNeverCommittedUncommitted) {
  Directory directory = load("safetensors");
  directory.erase("index.json.xxh3");
  expect_error(read(directory), "uncommitted", "found no index.json.xxh3, expected one");
  directory = load("safetensors");
  directory.erase("index.json");
  expect_error(read(directory), "uncommitted", "found no index.json, expected one");
  directory.erase("index.json.xxh3");
  expect_error(read(directory), "uncommitted", "found no index.json, expected one");
  expect_failure(read(load("safetensors"), "run/.tmp-step-5"), "uncommitted",
                 "found a temporary name, expected step-5");
}

TEST(Sharded, ComparesTheStepWithTheDirectoryAndTheValues) {
  expect_failure(read(load("safetensors"), "run/step-10"), "layout",
                 "step-10: directory has another step than its index; found 10, expected 5");
  EXPECT_THAT(read(load("safetensors"), "a copy")->findings, IsEmpty());
  Directory directory = load("safetensors");
  rewrite_index(directory, R"("values": {"step": 5)", R"("values": {"step": 4)");
  expect_failure(read(std::move(directory)), "step-count",
                 "values.step: is another step than the index's; found 4, expected 5");
}

TEST(Sharded, RefusesADigestFileThatIsNone) {
  Directory directory = load("safetensors");
  directory["index.json.xxh3"].pop_back();
  expect_error(read(directory), "trunc",
               "index.json.xxh3: byte 32: digest is cut short; found 32 bytes, expected 33");
  directory["index.json.xxh3"] = bytes_of(std::string(32, 'A') + "\n");
  expect_error(read(directory), "bitrot", "index.json.xxh3: byte 0: no digest");
  directory["index.json.xxh3"] = bytes_of(std::string(32, 'a') + "\n");
  expect_error(read(directory), "bitrot",
               "index.json: XXH3-128 is not what index.json.xxh3 says; found ");
}

/// One place of the small index changed: the message names the place.
struct IndexCase {
  std::string from;
  std::string to;
  std::string message;
};

TEST(ShardedIndex, RefusesEachBrokenRule) {
  const std::string good(as_text(load("safetensors_tiny").at("index.json")));
  ASSERT_TRUE(parse_sharded_index(good)) << parse_sharded_index(good).error().text();
  for (const IndexCase& wrong :
       {IndexCase{"\"step\": 5", "\"step\": 5.0", "step: no unsigned integer; found 5"},
        IndexCase{"\"format\": \"safetensors\"", "\"format\": \"zip\"",
                  "format: unknown format; found \"zip\", expected hdf5, safetensors or torch"},
        IndexCase{"shard-00000", "../shard-00000",
                  "shards.0.file: no plain file name of a shard; found \"../shard-00000"},
        IndexCase{"\"bytes\": 260", "\"bytes\": -1", "shards.0.bytes: no unsigned integer"},
        IndexCase{"\"xxh3\": \"", "\"xxh3\": \"F", "shards.0.xxh3: no digest; found \"F"},
        IndexCase{"\"shard\": 0", "\"shard\": 1",
                  "tensors.model.wte.weight.shard: no such shard; found 1, expected under 1"},
        IndexCase{"\"dtype\": \"float32\"", "\"dtype\": \"F32\"",
                  "tensors.model.wte.weight.dtype: unknown dtype; found \"F32\""},
        IndexCase{"[6, 4]", "[6, -4]", "tensors.model.wte.weight.shape: no dimension; found -4"},
        IndexCase{"[6, 4]", "24", "tensors.model.wte.weight.shape: no list; found 24"},
        IndexCase{"\"model.head.weight\": \"model.wte.weight\"",
                  "\"model.head.weight\": \"model.wpe.weight\"",
                  "aliases.model.head.weight: no stored tensor; found \"model.wpe.weight\""},
        IndexCase{"\"model.head.weight\": \"model.wte.weight\"",
                  "\"model.wte.weight\": \"model.wte.weight\"",
                  "aliases.model.wte.weight: an alias is stored as well"},
        IndexCase{"\"values\": ", "\"valves\": ", "valves: unknown key"},
        IndexCase{"\"aliases\": ", "\"step\": ", "no strict JSON"}}) {
    std::string text = good;
    ASSERT_NE(text.find(wrong.from), std::string::npos) << wrong.from;
    text.replace(text.find(wrong.from), wrong.from.size(), wrong.to);
    const auto index = parse_sharded_index(text);
    ASSERT_FALSE(index) << wrong.message;
    EXPECT_EQ(fixture::cause_of(index.error()), "st-struct");
    EXPECT_EQ(index.error().kind, ErrorKind::kMalformed);
    EXPECT_THAT(index.error().message, HasSubstr(wrong.message));
  }
}

TEST(ShardedIndex, DoesNotClaimToKnowALaterSchema) {
  std::string text(as_text(load("safetensors_tiny").at("index.json")));
  text.replace(text.find("sharded/1"), 9, "sharded/2");
  EXPECT_EQ(parse_sharded_index(text).error().kind, ErrorKind::kUnsupported);
}

class ShardedNotices : public testing::TestWithParam<std::string> {};

/// Two patterns for every byte of every file; nothing is exempt.
TEST_P(ShardedNotices, EveryFlippedByte) {
  const Directory good = load(GetParam());
  const auto checkpoint = read(good);
  ASSERT_TRUE(checkpoint);
  const Digest whole = fingerprint(*checkpoint, Threads{1})->whole;
  for (const auto& [name, bytes] : good) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      for (const unsigned pattern : {0x01U, 0xffU}) {
        Directory damaged = good;
        damaged[name][i] ^= static_cast<std::byte>(pattern);
        ASSERT_TRUE(fixture::notices(read(std::move(damaged)), whole))
            << name << " byte " << i << " xor " << pattern;
      }
    }
  }
}

TEST_P(ShardedNotices, EveryCutFile) {
  const Directory good = load(GetParam());
  for (const auto& [name, bytes] : good) {
    for (std::size_t size = 0; size < bytes.size(); size += 3) {
      Directory damaged = good;
      damaged[name].resize(size);
      const auto result = read(std::move(damaged));
      ASSERT_TRUE(!result ||
                  std::any_of(result->findings.begin(), result->findings.end(), fixture::is_bad))
          << name << " cut to " << size;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ShardedNotices, testing::Values("hdf5_tiny", "safetensors_tiny"),
                         [](const auto& row) { return row.param; });

}  // namespace
}  // namespace ckptverify
