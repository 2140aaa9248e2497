#include "formats/torch_legacy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "formats/torch_zip.h"
#include "tests/unit/formats/every_flip.h"
#include "tests/unit/formats/torch_fixture.h"

namespace ckptverify {
namespace {

using testing::byte_vector;
using testing::little;
using testing::pickle_dict;
using testing::pickle_int;
using testing::pickle_string;
using testing::pickled;

const std::string kGood = "torch-legacy/good/";
const std::string kMagic = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
const std::string kFour(16, '\1');

Result<Checkpoint> read_bytes(std::vector<std::byte> bytes) {
  return read_torch_legacy(Source::memory("file", std::move(bytes)), FormatTable({}));
}
Result<Checkpoint> read(const std::string& text) {
  return read_bytes(byte_vector(text));
}

/// A float tensor of four elements on the storage "0" of `count` elements.
std::string tensor(std::int32_t count, const std::string& view = "N") {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + pickle_string("storage") +
         "ctorch\nFloatStorage\n" + pickle_string("0") + pickle_string("cpu") + pickle_int(count) +
         view + "tQ" + pickle_int(0) + testing::pickle_tuple({4}) + testing::pickle_tuple({1}) +
         "\x89"
         "ccollections\nOrderedDict\n)RtR";
}

struct Stream {
  std::string object = pickled(pickle_dict({{"w", tensor(4)}}));
  std::string keys = pickled("]" + pickle_string("0") + "a");
  std::string storages = little(4, 8) + kFour;
  std::string protocol = pickled(pickle_int(1001));
  std::string little_endian = "\x88";

  std::string head() const {
    return kMagic + protocol +
           pickled(pickle_dict(
               {{"protocol_version", pickle_int(1001)}, {"little_endian", little_endian}}));
  }
  std::string text() const { return head() + object + keys + storages; }
  std::uint64_t storage_offset() const { return head().size() + object.size() + keys.size(); }
};

void expect_error(const std::string& text, CauseKind cause, std::uint64_t offset) {
  const auto checkpoint = read(text);
  ASSERT_FALSE(checkpoint) << "accepted";
  ASSERT_TRUE(checkpoint.error().cause) << checkpoint.error().text();
  EXPECT_EQ(checkpoint.error().cause->kind, cause) << checkpoint.error().text();
  EXPECT_EQ(checkpoint.error().offset, offset) << checkpoint.error().text();
}

TEST(TorchLegacy, AgreesWithPyTorchOnRealFiles) {
  for (const std::string name : {"full.pt", "kind_module.pt", "kind_quantized.pt", "kind_sparse.pt",
                                 "kind_subclasses.pt", "kind_views.pt"}) {
    SCOPED_TRACE(name);
    const auto bytes = byte_vector(testing::torch_fixture_text(kGood + name));
    EXPECT_TRUE(sniff_torch_legacy(Source::memory(name, bytes)));
    auto checkpoint = read_bytes(bytes);
    ASSERT_TRUE(checkpoint) << checkpoint.error().text();
    testing::expect_oracle(*checkpoint, kGood + name + ".json");
    testing::expect_parts(*checkpoint, kGood + name + ".json");
    EXPECT_FALSE(testing::is_reported(*std::move(checkpoint)));
  }
}

TEST(TorchLegacy, IsTheSameStateAsTheZipOfTheSameTensors) {
  for (const std::string name : {"kind_views.pt", "kind_sparse.pt", "kind_quantized.pt"}) {
    const auto legacy = read(testing::torch_fixture_text(kGood + name));
    const auto zip = read_torch_zip(
        Source::memory(name, byte_vector(testing::torch_fixture_text("torch-zip/good/" + name))),
        FormatTable({}));
    ASSERT_TRUE(legacy && zip);
    EXPECT_EQ(fingerprint(*legacy)->whole, fingerprint(*zip)->whole) << name;
  }
}

TEST(TorchLegacy, RefusesEveryPrefix) {
  testing::expect_every_prefix_refused(byte_vector(Stream().text()), read_bytes);
}

TEST(TorchLegacy, NoticesEveryFlippedByteOrSaysThatNothingProtectsIt) {
  testing::expect_every_flip_noticed(byte_vector(Stream().text()), read_bytes);
}

TEST(TorchLegacy, OwnsEveryByte) {
  const auto checkpoint = read(Stream().text());
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  const std::vector<std::uint64_t> sizes = {Stream().text().size()};
  EXPECT_TRUE(checkpoint->coverage.gaps(sizes).empty());
  EXPECT_EQ(checkpoint->coverage.size(Owner::kTensor), 16U);
  EXPECT_FALSE(testing::is_reported(checkpoint));
}

TEST(TorchLegacy, RecognisesTheMagicNumberOfEveryProtocol) {
  const auto sniffs = [](const std::string& text) {
    return sniff_torch_legacy(Source::memory("file", byte_vector(text)));
  };
  EXPECT_TRUE(sniffs(kMagic));
  EXPECT_TRUE(sniffs("L119547037146038801333356L\n."));
  EXPECT_FALSE(sniffs("L119547037146038801333357L\n."));
  EXPECT_FALSE(sniffs(kMagic.substr(0, 14)));
  EXPECT_FALSE(sniffs(""));
}

TEST(TorchLegacy, ReadsAStorageThatIsAPartOfAnother) {
  const std::string view = "(" + pickle_string("1") + pickle_int(2) + pickle_int(4) + "t";
  Stream stream;
  stream.object = pickled(pickle_dict({{"w", tensor(8, view)}}));
  stream.storages = little(8, 8) + std::string(8, '\2') + kFour + std::string(8, '\3');
  const auto checkpoint = read(stream.text());
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  const auto bytes = logical_bytes(*checkpoint, std::get<Tensor>(checkpoint->entries.at(0).node));
  ASSERT_TRUE(bytes);
  EXPECT_EQ(as_text(bytes->view()), kFour);
}

TEST(TorchLegacy, RefusesAViewThatLeavesItsStorage) {
  const std::string view = "(" + pickle_string("1") + pickle_int(5) + pickle_int(4) + "t";
  Stream stream;
  stream.object = pickled(pickle_dict({{"w", tensor(8, view)}}));
  const std::string text = stream.text();
  expect_error(text, CauseKind::kLayout, text.find(view) + view.size() - 1);
}

TEST(TorchLegacy, RefusesAnotherCountThanTheTensorsSay) {
  Stream stream;
  stream.storages = little(5, 8) + std::string(20, '\1');
  expect_error(stream.text(), CauseKind::kLayout, stream.storage_offset());
}

TEST(TorchLegacy, CallsAnEndInsideOfAStorageACut) {
  Stream stream;
  stream.storages.pop_back();
  expect_error(stream.text(), CauseKind::kTrunc, stream.text().size());
  stream.storages.clear();
  expect_error(stream.text(), CauseKind::kTrunc, stream.text().size());
}

TEST(TorchLegacy, FindsBytesAfterTheLastStorage) {
  Stream stream;
  const std::string text = stream.text() + "more";
  const auto checkpoint = read(text);
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  ASSERT_EQ(checkpoint->findings.size(), 1U);
  EXPECT_EQ(checkpoint->findings[0].cause, (Cause{CauseKind::kLayout}));
  EXPECT_EQ(checkpoint->findings[0].evidence[0].value, std::to_string(text.size() - 4));
}

TEST(TorchLegacy, RefusesKeysThatDoNotMatchTheTensors) {
  Stream unknown;
  unknown.keys = pickled("](" + pickle_string("0") + pickle_string("7") + "e");
  expect_error(unknown.text(), CauseKind::kLayout, unknown.storage_offset() + 24);
  Stream twice;
  twice.keys = pickled("](" + pickle_string("0") + pickle_string("0") + "e");
  expect_error(twice.text(), CauseKind::kLayout, twice.storage_offset() + 24);
  Stream missing;
  missing.keys = pickled("]");
  expect_error(missing.text(), CauseKind::kLayout, missing.text().find("tQ") + 1);
  Stream none;
  none.keys = pickled("N");
  expect_error(none.text(), CauseKind::kBitrot, none.head().size() + none.object.size() + 2);
}

TEST(TorchLegacy, DoesNotClaimAnotherProtocol) {
  Stream stream;
  stream.protocol = pickled(pickle_int(1002));
  const auto checkpoint = read(stream.text());
  ASSERT_FALSE(checkpoint);
  EXPECT_EQ(checkpoint.error().kind, ErrorKind::kUnsupported);
}

TEST(TorchLegacy, WarnsOfABigEndianWriterAndFindsADamagedSystem) {
  Stream stream;
  stream.little_endian = "\x89";
  auto checkpoint = read(stream.text());
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  ASSERT_EQ(checkpoint->findings.size(), 1U);
  EXPECT_EQ(checkpoint->findings[0].status, Status::kWarn);
  stream.little_endian = "N";
  checkpoint = read(stream.text());
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  ASSERT_EQ(checkpoint->findings.size(), 1U);
  EXPECT_EQ(checkpoint->findings[0].cause, (Cause{CauseKind::kBitrot}));
}

}  // namespace
}  // namespace ckptverify
