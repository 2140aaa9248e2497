// HDF5 against files of h5py, and what damage to them amounts to. Every read starts a child
// process.
#include "formats/hdf5.h"

#include <sys/stat.h>

#include <chrono>
#include <cstdlib>

#include "ckptverify/check.h"
#include "formats/container/hdf5_filters.h"
#include "formats/container/hdf5_probe.h"
#include "formats/container/hdf5_superblock.h"
#include "tests/unit/formats/format_fixture.h"

namespace ckptverify {
namespace {

using fixture::FileBytes;
using testing::HasSubstr;

Result<Checkpoint> read_bytes(FileBytes bytes) {
  return read_hdf5(Source::memory("x.h5", std::move(bytes)), formats());
}

Result<Checkpoint> read_good(const std::string& name) {
  const auto source = Source::open(fixture::good("hdf5/good/" + name));
  EXPECT_TRUE(source);
  return formats().read(*source);
}

FileBytes small() {
  return fixture::read_file(fixture::good("hdf5/good/small.h5"));
}

void set_u64(FileBytes& bytes, std::size_t offset, std::uint64_t value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

constexpr std::size_t kEndOfFileInVersion3 = 28;

TEST(Hdf5, ReadsContiguousDataAndZstdChunksOfH5py) {
  const auto checkpoint = read_good("small.h5");
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_EQ(checkpoint->format, "hdf5");
  fixture::expect_oracle(*checkpoint, fixture::good("hdf5/good/small.oracle.json"));
  fixture::expect_whole_coverage(*checkpoint);
  EXPECT_TRUE(checkpoint->findings.empty());
  EXPECT_EQ(std::get<Value>(find_entry(*checkpoint, "epoch")->node), Value(std::int64_t{3}));
  // Ten rows in chunks of four.
  EXPECT_EQ(std::get<Tensor>(find_entry(*checkpoint, "a.packed")->node).pieces.size(), 3U);
}

TEST(Hdf5, VerifiesTheDigestOfADataset) {
  const auto checkpoint = read_good("small.h5");
  ASSERT_TRUE(checkpoint);
  const auto findings = verify_checksums(*checkpoint);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].status, Status::kPass);
  EXPECT_THAT(findings[0].message, HasSubstr("1 of 1 stored checksum is right"));
}

TEST(Hdf5, ReadsEveryKindOfDatasetThatH5pyWrites) {
  const auto checkpoint = read_good("weights.h5");
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  fixture::expect_whole_coverage(*checkpoint);
  // Shuffled, deflated and summed chunks, and big-endian floats, are the kernel again: the SHA-256
  // is NumPy's.
  for (const std::string path : {"dense.kernel", "chunked", "be"}) {
    const auto logical =
        logical_bytes(*checkpoint, std::get<Tensor>(find_entry(*checkpoint, path)->node));
    ASSERT_TRUE(logical) << logical.error().text();
    EXPECT_EQ(sha256_hex(logical->view()),
              "128fb79384e32f741b0f520a9e57d8d1bff614da16c2111b1578bde443de8ac4")
        << path;
  }
  const std::vector<std::pair<std::string, std::string>> dtypes = {
      {"f16", "float16"},    {"i64", "int64"},     {"bool", "bool"},
      {"scalar", "float64"}, {"empty", "float32"}, {"cplx", "complex128"}};
  for (const auto& [path, dtype] : dtypes)
    EXPECT_EQ(dtype_name(std::get<Tensor>(find_entry(*checkpoint, path)->node).dtype), dtype);
  EXPECT_EQ(std::get<Value>(find_entry(*checkpoint, "str")->node), Value(std::string("hello")));
  EXPECT_EQ(std::get<Value>(find_entry(*checkpoint, "step")->node), Value(std::int64_t{12}));
}

TEST(Hdf5, VerifiesTheFletcherChecksumOfEveryChunkThatHasOne) {
  FileBytes bytes = fixture::read_file(fixture::good("hdf5/good/weights.h5"));
  constexpr std::size_t kInAChunk = 21218;
  bytes[kInAChunk] ^= std::byte{1};
  const auto checkpoint = read_bytes(std::move(bytes));
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  ASSERT_FALSE(checkpoint->checksums.empty());
  const auto findings = check_checkpoint(*checkpoint, {.threads = {1}});
  std::vector<std::string> said;
  for (const Finding& finding : findings) {
    if (finding.check == "static.finite") {
      EXPECT_EQ(finding.status, Status::kNotObserved);
      EXPECT_THAT(finding.message, HasSubstr("chunked: its numbers were not looked at"));
    }
    if (finding.status != Status::kFail) continue;
    said.push_back(finding.check);
    EXPECT_EQ(finding.cause->id(), "bitrot");
    EXPECT_THAT(finding.subject, testing::MatchesRegex("chunked, its chunk at .*, in x.h5"));
    const std::uint64_t offset = std::stoull(finding.evidence.at(5).value);
    EXPECT_EQ(finding.evidence.at(5).name, "offset");
    EXPECT_LE(offset, kInAChunk);
    EXPECT_GT(offset + 2000, kInAChunk);
    EXPECT_THAT(finding.message, HasSubstr("byte " + std::to_string(offset) + ": the fletcher32"));
  }
  EXPECT_THAT(said, testing::ElementsAre("static.checksums"));
}

TEST(Hdf5, SaysThatItsChecksumsCoverPartOfTheTensorsAlone) {
  const auto checkpoint = read_good("weights.h5");
  ASSERT_TRUE(checkpoint);
  const auto findings = verify_checksums(*checkpoint);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].status, Status::kPass);
  EXPECT_THAT(
      findings[0].message,
      testing::MatchesRegex(".*by fletcher32; they cover [0-9]+ of [0-9]+ bytes of tensors: "
                            "elsewhere a value that changed .*"));
}

TEST(Hdf5, NamesTheFileAndItsByteWhereAChunkCannotBeDecoded) {
  FileBytes bytes = fixture::read_file(fixture::good("hdf5/good/weights.h5"));
  bytes[21218] ^= std::byte{1};
  const auto checkpoint = read_bytes(std::move(bytes));
  ASSERT_TRUE(checkpoint);
  const auto& tensor = std::get<Tensor>(find_entry(*checkpoint, "chunked")->node);
  const auto logical = logical_bytes(*checkpoint, tensor);
  ASSERT_FALSE(logical);
  EXPECT_EQ(logical.error().subject, "x.h5");
  EXPECT_GT(*logical.error().offset, 20000U);
}

TEST(Hdf5, ReadsUnwrittenChunksAsTheirFillValueAndSaysSo) {
  const auto checkpoint = read_good("weights.h5");
  ASSERT_TRUE(checkpoint);
  const auto logical =
      logical_bytes(*checkpoint, std::get<Tensor>(find_entry(*checkpoint, "never_written")->node));
  ASSERT_TRUE(logical) << logical.error().text();
  ASSERT_EQ(logical->view().size(), 64U);
  for (std::size_t i = 0; i < 16; ++i) {
    float value = 0;
    std::memcpy(&value, logical->view().data() + 4 * i, 4);
    EXPECT_EQ(value, 7.0F);
  }
  ASSERT_EQ(checkpoint->findings.size(), 2U);
  EXPECT_EQ(
      checkpoint->findings[0].message,
      "never_written: 4 parts were never written, the fill value stands for them; expected 0");
}

TEST(Hdf5, NamesASoftLinkAndDoesNotFollowIt) {
  const auto checkpoint = read_good("weights.h5");
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(find_entry(*checkpoint, "soft"), nullptr);
  EXPECT_EQ(checkpoint->findings[1].status, Status::kWarn);
  EXPECT_EQ(checkpoint->findings[1].message, "soft: soft link was not followed");
}

TEST(Hdf5, CallsAFileShorterThanItsSuperblockSaysTruncated) {
  FileBytes bytes = small();
  const std::size_t size = bytes.size();
  bytes.pop_back();
  const auto result = read_bytes(std::move(bytes));
  ASSERT_FALSE(result);
  EXPECT_EQ(fixture::cause_of(result.error()), "trunc");
  EXPECT_EQ(result.error().offset, size - 1);
  EXPECT_EQ(result.error().message, "file ends before its superblock says; found " +
                                        std::to_string(size - 1) + " bytes, expected " +
                                        std::to_string(size));
}

TEST(Hdf5, CallsEveryPrefixTruncatedWithoutStartingAChild) {
  const FileBytes good = small();
  for (std::size_t size = 8; size < good.size(); ++size) {
    const auto result = parse_hdf5_superblock(Bytes(good).first(size));
    ASSERT_FALSE(result) << size;
    ASSERT_EQ(fixture::cause_of(result.error()), "trunc") << size;
  }
}

TEST(Hdf5, WarnsOfBytesAfterTheEndAndOwnsThem) {
  FileBytes bytes = small();
  const std::size_t size = bytes.size();
  bytes.resize(size + 5);
  const auto checkpoint = read_bytes(std::move(bytes));
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  ASSERT_EQ(checkpoint->findings.size(), 1U);
  EXPECT_EQ(checkpoint->findings[0].status, Status::kWarn);
  EXPECT_THAT(checkpoint->findings[0].message, HasSubstr("bytes follow the end"));
  fixture::expect_whole_coverage(*checkpoint);
  EXPECT_EQ(fixture::owner_of(*checkpoint, 0, size), Owner::kUnverifiable);
}

TEST(Hdf5, ChecksTheChecksumOfANewSuperblockBeforeItsEndOfFile) {
  FileBytes bytes = fixture::read_file(fixture::good("hdf5/good/latest_libver.h5"));
  ASSERT_TRUE(parse_hdf5_superblock(bytes));
  bytes[kEndOfFileInVersion3 + 3] ^= std::byte{0x01};
  const auto result = parse_hdf5_superblock(bytes);
  ASSERT_FALSE(result);
  EXPECT_EQ(fixture::cause_of(result.error()), "bitrot");
  EXPECT_EQ(result.error().offset, 44U);
  EXPECT_THAT(result.error().message, HasSubstr("checksum of the superblock is wrong; found "));
}

TEST(Hdf5, SaysThatAWriterLeftTheFileOpen) {
  FileBytes bytes = fixture::read_file(fixture::good("hdf5/good/latest_libver.h5"));
  bytes[11] = std::byte{0x01};
  const std::uint32_t checksum = hdf5_lookup3(Bytes(bytes).first(44));
  std::memcpy(bytes.data() + 44, &checksum, sizeof checksum);
  const auto superblock = parse_hdf5_superblock(bytes);
  ASSERT_TRUE(superblock);
  EXPECT_TRUE(superblock->open_for_writing);
}

TEST(Hdf5, RefusesAVersionAndWidthsThatDoNotExist) {
  FileBytes bytes = small();
  bytes[8] = std::byte{9};
  EXPECT_EQ(parse_hdf5_superblock(bytes).error().message,
            "impossible version of the superblock; found 9, expected 0 to 3");
  bytes = small();
  bytes[13] = std::byte{3};
  EXPECT_EQ(parse_hdf5_superblock(bytes).error().message,
            "impossible width of offsets or lengths; found 3, expected 2, 4 or 8");
  bytes[13] = std::byte{4};
  EXPECT_EQ(parse_hdf5_superblock(bytes).error().kind, ErrorKind::kUnsupported);
}

TEST(Hdf5, DoesNotReadAUserBlock) {
  FileBytes bytes(512);
  const FileBytes file = small();
  bytes.insert(bytes.end(), file.begin(), file.end());
  EXPECT_TRUE(sniff_hdf5(Source::memory("x", bytes)));
  const auto result = read_bytes(std::move(bytes));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kUnsupported);
}

TEST(Hdf5, ReportsDamagedMetadataThatTheLibraryRefuses) {
  FileBytes bytes = small();
  // The root group's symbol table entry points to its object header at byte 64 of version 0.
  set_u64(bytes, 64, 0x7fffffffffff);
  const auto result = read_bytes(std::move(bytes));
  ASSERT_FALSE(result);
  EXPECT_EQ(fixture::cause_of(result.error()), "bitrot");
  EXPECT_THAT(result.error().message, HasSubstr("HDF5 library does not open the file: "));
}

TEST(Hdf5, NoticesEveryFlippedByteOfData) {
  const FileBytes good = small();
  const auto checkpoint = read_bytes(good);
  ASSERT_TRUE(checkpoint);
  const Digest whole = fingerprint(*checkpoint, Threads{1})->whole;
  for (const OwnedRange& owned : checkpoint->coverage.sorted()) {
    if (owned.owner != Owner::kTensor) continue;
    for (std::uint64_t i = 0; i < owned.range.size; ++i) {
      FileBytes bytes = good;
      bytes[owned.range.offset + i] ^= static_cast<std::byte>(i % 2 == 0 ? 0x01 : 0xff);
      ASSERT_TRUE(fixture::notices(read_bytes(std::move(bytes)), whole))
          << "byte " << owned.range.offset + i << " of " << owned.label;
    }
  }
}

TEST(Hdf5, SurvivesFlippedBytesOfMetadata) {
  const FileBytes good = small();
  // A prime stride meets every kind of structure; each damaged copy must end in a result, whatever
  // the library does.
  for (std::size_t i = 8; i < 11296; i += 97) {
    FileBytes bytes = good;
    bytes[i] ^= std::byte{0xff};
    const auto result = read_bytes(std::move(bytes));
    if (!result) {
      EXPECT_NE(result.error().kind, ErrorKind::kUnreadable) << i << result.error().text();
    }
  }
}

/// A child of our own making: a script that does what a broken library might.
class Hdf5Child : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "hdf5-child-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Error error_of(const std::string& script,
                 std::chrono::milliseconds deadline = std::chrono::minutes(1)) {
    const auto path = folder_ / "child";
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    EXPECT_EQ(chmod(path.c_str(), 0700), 0);
    const auto listing =
        probe_hdf5(Source::memory("x.h5", small()), {.executable = path, .deadline = deadline});
    EXPECT_FALSE(listing);
    return listing ? Error{} : listing.error();
  }

  std::filesystem::path folder_;
};

TEST_F(Hdf5Child, ThatCrashesIsAMalformedFile) {
  const Error error = error_of("kill -SEGV $$");
  EXPECT_EQ(error.kind, ErrorKind::kMalformed);
  EXPECT_EQ(fixture::cause_of(error), "bitrot");
  EXPECT_THAT(error.message, HasSubstr("the HDF5 library died of this file: signal 11"));
}

TEST_F(Hdf5Child, ThatHangsIsKilledAtTheDeadline) {
  const auto begin = std::chrono::steady_clock::now();
  const Error error = error_of("exec tail -f /dev/null", std::chrono::milliseconds(100));
  EXPECT_EQ(error.kind, ErrorKind::kUnreadable);
  EXPECT_EQ(error.message,
            "the HDF5 library does not come to an end with this file; waited 100 ms");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST_F(Hdf5Child, ThatCannotRunSaysNothingOfTheFile) {
  EXPECT_EQ(error_of("exit 127").kind, ErrorKind::kUnreadable);
  EXPECT_EQ(error_of("kill -KILL $$").kind, ErrorKind::kUnreadable);
  const auto listing = probe_hdf5(Source::memory("x.h5", small()), {.executable = "/nonexistent"});
  ASSERT_FALSE(listing);
  EXPECT_EQ(listing.error().kind, ErrorKind::kUnreadable);
}

TEST_F(Hdf5Child, ThatUsesUpItsTimeSaysNothingOfTheFile) {
  const Error error = error_of("kill -XCPU $$");
  EXPECT_EQ(error.kind, ErrorKind::kUnreadable);
  EXPECT_EQ(error.message,
            "the HDF5 library does not come to an end with this file; waited its CPU time");
}

TEST_F(Hdf5Child, ThatStopsBeforeItsEndIsNotBelieved) {
  EXPECT_EQ(error_of("echo '{\"kind\":\"link\",\"path\":[\"a\"],\"what\":\"soft link\"}'").message,
            "the HDF5 child's listing has no end; found 1 lines before it stopped");
}

TEST(Hdf5Listing, ChecksEveryPlaceAgainstTheFile) {
  const std::string begin =
      R"({"kind":"dataset","path":["a"],"address":1,"type":{"size":4,"class":"float",)"
      R"("exponent":8,"mantissa":23,"bias":127,"order":"little"},"dims":[2],"layout":"contiguous",)";
  const std::string end = "\n{\"kind\":\"end\",\"lines\":1}\n";
  EXPECT_TRUE(parse_hdf5_listing(begin + R"("offset":92,"stored":8})" + end, 100));
  for (const std::string place :
       {R"("offset":93,"stored":8})", R"("offset":18446744073709551615,"stored":8})",
        R"("offset":92,"stored":18446744073709551615})"}) {
    const auto listing = parse_hdf5_listing(begin + place + end, 100);
    ASSERT_FALSE(listing) << place;
    EXPECT_THAT(listing.error().message, HasSubstr("expected a place inside the file's 100 bytes"));
  }
}

TEST(Hdf5Filters, KnowPipelinesInTheirOrderOnly) {
  const std::vector<std::uint32_t> usual = {kHdf5Shuffle, kHdf5Deflate, kHdf5Fletcher32};
  const std::vector<std::uint32_t> odd = {kHdf5Deflate, kHdf5Shuffle};
  const std::vector<std::uint32_t> unknown = {32001};
  EXPECT_TRUE(hdf5_decoder(usual, 4));
  EXPECT_FALSE(hdf5_decoder(usual, 3));
  EXPECT_FALSE(hdf5_decoder(odd, 4));
  EXPECT_FALSE(hdf5_decoder(unknown, 4));
  EXPECT_EQ(*hdf5_decoder({}, 4), nullptr);
}

}  // namespace
}  // namespace ckptverify
