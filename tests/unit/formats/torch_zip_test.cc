#include "formats/torch_zip.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/unit/formats/every_flip.h"
#include "tests/unit/formats/torch_fixture.h"

namespace ckptverify {
namespace {

using namespace std::string_literals;
using testing::byte_vector;
using testing::pickle_dict;
using testing::pickle_int;
using testing::pickle_string;
using testing::pickle_tensor;
using testing::pickled;
using testing::PickledTensor;
using testing::small_zip;
using testing::torch_archive;

const std::string kGood = "torch-zip/good/";
const std::string kFour(16, '\1');  // a storage of four floats

Result<Checkpoint> read_bytes(std::vector<std::byte> bytes) {
  return read_torch_zip(Source::memory("file", std::move(bytes)), FormatTable({}));
}
Result<Checkpoint> read(const std::string& text) {
  return read_bytes(byte_vector(text));
}

Checkpoint read_good(const std::string& name) {
  auto checkpoint = read(testing::torch_fixture_text(kGood + name));
  EXPECT_TRUE(checkpoint) << checkpoint.error().text();
  return checkpoint ? *std::move(checkpoint) : Checkpoint();
}

void expect_error(const std::string& text, CauseKind cause, std::uint64_t offset) {
  const auto checkpoint = read(text);
  ASSERT_FALSE(checkpoint) << "accepted";
  ASSERT_TRUE(checkpoint.error().cause) << checkpoint.error().text();
  EXPECT_EQ(checkpoint.error().cause->kind, cause) << checkpoint.error().text();
  EXPECT_EQ(checkpoint.error().offset, offset) << checkpoint.error().text();
}

/// The one failure among the findings.
void expect_failure(const std::string& text, CauseKind cause, std::uint64_t offset) {
  const auto checkpoint = read(text);
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  std::vector<Finding> failures;
  std::copy_if(checkpoint->findings.begin(), checkpoint->findings.end(),
               std::back_inserter(failures), testing::is_bad);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].cause, (Cause{cause})) << failures[0].message;
  EXPECT_NE(failures[0].message.find("byte " + std::to_string(offset) + ":"), std::string::npos)
      << failures[0].message << " for " << offset;
}

const Entry& entry_at(const Checkpoint& checkpoint, const std::string& path) {
  const Entry* entry = find_entry(checkpoint, path);
  EXPECT_NE(entry, nullptr) << path;
  static const Entry none;
  return entry == nullptr ? none : *entry;
}

TEST(TorchZip, AgreesWithPyTorchOnRealFiles) {
  for (const std::string name :
       {"full.pt", "sgd.pt", "adamw_fused.pt", "whole_module.pt", "dtypes.pt", "shared.pt"}) {
    SCOPED_TRACE(name);
    const std::string text = testing::torch_fixture_text(kGood + name);
    EXPECT_TRUE(sniff_torch_zip(Source::memory(name, byte_vector(text))));
    auto checkpoint = read_good(name);
    if (name == "full.pt") {
      // The oracle lists NumPy's RNG state as an object.
      const auto* state = std::get_if<Tensor>(&entry_at(checkpoint, "rng.numpy.1").node);
      ASSERT_NE(state, nullptr);
      EXPECT_EQ(state->dtype, DType::kUint32);
      EXPECT_EQ(state->shape, std::vector<std::uint64_t>{624});
    }
    testing::expect_oracle(checkpoint, kGood + name + ".json");
    EXPECT_FALSE(testing::is_reported(std::move(checkpoint)));
  }
}

TEST(TorchZip, AgreesWithPyTorchOnPythonObjects) {
  const Checkpoint checkpoint = read_good("objects.pt");
  testing::expect_oracle(checkpoint, kGood + "objects.pt.json");
  const auto value = [&](const std::string& path) {
    const auto* found = std::get_if<Value>(&entry_at(checkpoint, path).node);
    return found == nullptr ? "none" : value_text(*found);
  };
  const auto type = [&](const std::string& path) {
    const auto* found = std::get_if<Opaque>(&entry_at(checkpoint, path).node);
    return found == nullptr ? "none" : found->type;
  };
  EXPECT_EQ(value("bytes"), "b\"0001ff\"");
  EXPECT_EQ(value("bytearray"), "b\"616263\"");
  EXPECT_EQ(value("np_int"), "7");
  EXPECT_EQ(value("size.1"), "3");
  EXPECT_EQ(value("deque.2"), "3");
  EXPECT_EQ(value("set.0"), "1");
  EXPECT_EQ(value("frozenset.0"), "3");
  EXPECT_EQ(value("device"), "\"cuda:0\"");
  EXPECT_EQ(value("dtype"), "\"torch.bfloat16\"");
  EXPECT_EQ(value("namespace.lr"), "0.1");
  EXPECT_EQ(value("dataclass.name"), "\"x\"");
  EXPECT_EQ(type("namespace"), "argparse.Namespace");
  EXPECT_EQ(type("enum"), "__main__.Color");
  EXPECT_EQ(type("dt"), "datetime.datetime");
  EXPECT_EQ(type("path"), "pathlib.PosixPath");
  EXPECT_EQ(type("partial"), "functools.partial");
  EXPECT_EQ(type("np_str"), "numpy.ndarray of U3");
  const auto* fortran = std::get_if<Tensor>(&entry_at(checkpoint, "np_fortran").node);
  ASSERT_NE(fortran, nullptr);
  EXPECT_EQ(fortran->pieces[0].strides, (std::vector<std::int64_t>{1, 3}));
}

TEST(TorchZip, GivesEachPartItsComponent) {
  const Checkpoint full = read_good("full.pt");
  const auto component = [&](const std::string& path) { return entry_at(full, path).component; };
  EXPECT_EQ(component("model.0.weight"), Component::kModel);
  EXPECT_EQ(component("optimizer.state.0.exp_avg"), Component::kOptimizer);
  EXPECT_EQ(component("scheduler.last_epoch"), Component::kScheduler);
  EXPECT_EQ(component("scaler.scale"), Component::kScaler);
  EXPECT_EQ(component("step"), Component::kStep);
  EXPECT_EQ(component("rng.torch"), Component::kRng);
  EXPECT_EQ(component("config.lr"), Component::kConfig);
  EXPECT_EQ(relative_path(entry_at(full, "model.0.weight")), "0.weight");
  for (const Entry& entry : read_good("shared.pt").entries) {
    EXPECT_EQ(entry.component, Component::kModel);
    EXPECT_EQ(relative_path(entry), entry.path);
  }
  for (const Entry& entry : read_good("whole_module.pt").entries) {
    EXPECT_EQ(entry.component, Component::kModel);
  }
}

TEST(TorchZip, NamesTheFirstOfTiedTensors) {
  const Checkpoint checkpoint = read_good("shared.pt");
  EXPECT_EQ(entry_at(checkpoint, "head").alias_of, "embed");
  EXPECT_EQ(entry_at(checkpoint, "embed").alias_of, "");
  EXPECT_EQ(entry_at(checkpoint, "row").alias_of, "");  // a part of it is not the same
  EXPECT_EQ(entry_at(checkpoint, "col").alias_of, "");
}

TEST(TorchZip, CallsMissingChecksumsUnverifiableAndNotWrong) {
  const Checkpoint checkpoint = read_good("full_nocrc.pt");
  testing::expect_oracle(checkpoint, kGood + "full.pt.json");
  EXPECT_TRUE(checkpoint.checksums.empty());
  ASSERT_EQ(checkpoint.findings.size(), 1U);
  EXPECT_EQ(checkpoint.findings[0].check, "static.checksums");
  EXPECT_EQ(checkpoint.findings[0].status, Status::kWarn);
  EXPECT_EQ(checkpoint.findings[0].evidence.size(), 37U);
}

TEST(TorchZip, NoticesEveryFlippedByte) {
  testing::expect_every_flip_noticed(byte_vector(testing::torch_fixture_text(kGood + "shared.pt")),
                                     read_bytes);
}

TEST(TorchZip, RefusesEveryPrefix) {
  testing::expect_every_prefix_refused(
      byte_vector(testing::torch_fixture_text(kGood + "shared.pt")), read_bytes);
}

TEST(TorchZip, RecognisesACutFileByItsBeginning) {
  const std::string text = testing::torch_fixture_text(kGood + "full.pt");
  EXPECT_TRUE(sniff_torch_zip(Source::memory("cut", byte_vector(text.substr(0, 5000)))));
  EXPECT_FALSE(sniff_torch_zip(Source::memory("other", byte_vector(small_zip({{"x", ""}}).bytes))));
  EXPECT_FALSE(sniff_torch_zip(Source::memory("none", {})));
}

TEST(TorchZip, ReadsAnArchiveWithoutOptionalRecords) {
  const auto zip = torch_archive(pickled(pickle_dict({{"w", pickle_tensor()}})), kFour);
  const auto checkpoint = read(zip.bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  ASSERT_EQ(checkpoint->entries.size(), 1U);
  EXPECT_EQ(checkpoint->entries[0].path, "w");
  EXPECT_EQ(checkpoint->checksums.size(), 4U);
  EXPECT_FALSE(testing::is_reported(checkpoint));
}

TEST(TorchZip, HonoursTheByteOrder) {
  const auto zip = small_zip({{"a/data.pkl", pickled(pickle_tensor({.count = 1, .size = {1}}))},
                              {"a/byteorder", "big"},
                              {"a/data/0", std::string("\x3f\x80\0\0", 4)},
                              {"a/version", "3\n"}});
  const auto checkpoint = read(zip.bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  const auto bytes = logical_bytes(*checkpoint, std::get<Tensor>(checkpoint->entries.at(0).node));
  ASSERT_TRUE(bytes);
  EXPECT_EQ(as_text(bytes->view()), std::string("\0\0\x80\x3f", 4));
}

// One rule each: what it is called, and where.

struct Bad {
  testing::SmallZip zip;
  std::uint64_t pickle;   // offset of the pickle
  std::uint64_t payload;  // offset of data/0's payload
};

Bad with_tensor(const PickledTensor& tensor, const std::string& storage = kFour) {
  Bad bad{torch_archive(pickled(pickle_tensor(tensor)), storage), 0, 0};
  bad.pickle = 30 + std::string("a/data.pkl").size();
  bad.payload = bad.zip.header_offsets[2] + 30 + std::string("a/data/0").size();
  return bad;
}

std::uint64_t offset_of(const std::string& text, std::string_view part, std::uint64_t from = 0) {
  const auto found = text.find(part, from);
  EXPECT_NE(found, std::string::npos);
  return found;
}

TEST(TorchZip, RefusesAStorageThatIsTooShort) {
  const Bad bad = with_tensor({}, std::string(12, '\1'));
  expect_error(bad.zip.bytes, CauseKind::kTrunc, bad.payload);
}

TEST(TorchZip, RefusesAStorageThatIsTooLong) {
  const Bad bad = with_tensor({}, std::string(20, '\1'));
  expect_error(bad.zip.bytes, CauseKind::kLayout, bad.payload);
}

TEST(TorchZip, RefusesAStorageWithoutRecord) {
  const Bad bad = with_tensor({.key = "7"});
  expect_error(bad.zip.bytes, CauseKind::kLayout, offset_of(bad.zip.bytes, "tQ") + 1);
}

TEST(TorchZip, RefusesStridesThatLeaveTheStorage) {
  for (const PickledTensor& tensor :
       {PickledTensor{.size = {5}}, PickledTensor{.offset = 1}, PickledTensor{.stride = {2}},
        PickledTensor{.size = {2, 2}, .stride = {3, 1}},
        PickledTensor{.size = {0x7fffffff, 0x7fffffff}, .stride = {0x7fffffff, 1}}}) {
    const Bad bad = with_tensor(tensor);
    expect_error(bad.zip.bytes, CauseKind::kLayout, offset_of(bad.zip.bytes, ")RtR") + 3);
  }
}

TEST(TorchZip, RefusesNegativeSizes) {
  const Bad bad = with_tensor({.size = {-4}});
  expect_error(bad.zip.bytes, CauseKind::kLayout, offset_of(bad.zip.bytes, pickle_int(-4)));
}

TEST(TorchZip, RefusesStridesOfAnotherRank) {
  const Bad bad = with_tensor({.size = {2, 2}, .stride = {1}});
  expect_error(bad.zip.bytes, CauseKind::kLayout, offset_of(bad.zip.bytes, ")RtR") + 3);
}

TEST(TorchZip, RefusesAnUnknownStorageClass) {
  const Bad bad = with_tensor({.storage = "OctonionStorage"});
  expect_error(bad.zip.bytes, CauseKind::kTensorRep, offset_of(bad.zip.bytes, "tQ") + 1);
}

TEST(TorchZip, FindsAStorageThatNoTensorNames) {
  auto zip = small_zip({{"a/data.pkl", pickled("N")}, {"a/data/0", kFour}, {"a/version", "3\n"}});
  expect_failure(zip.bytes, CauseKind::kLayout, zip.header_offsets[1] + 38);
}

TEST(TorchZip, FindsBytesAfterThePickle) {
  auto zip = small_zip({{"a/data.pkl", pickled("N") + "more"}, {"a/version", "3\n"}});
  expect_failure(zip.bytes, CauseKind::kLayout, 40 + 4);
}

TEST(TorchZip, FindsAMissingVersion) {
  expect_failure(small_zip({{"a/data.pkl", pickled("N")}}).bytes, CauseKind::kLayout, 0);
}

TEST(TorchZip, FindsADamagedByteOrder) {
  auto zip =
      small_zip({{"a/data.pkl", pickled("N")}, {"a/byteorder", "middle"}, {"a/version", "3\n"}});
  expect_failure(zip.bytes, CauseKind::kBitrot, zip.header_offsets[1] + 41);
}

TEST(TorchZip, FindsRecordsOutsideOfTheTopFolder) {
  auto zip = small_zip({{"a/data.pkl", pickled("N")}, {"a/version", "3\n"}, {"b/version", "3\n"}});
  const auto checkpoint = read(zip.bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  ASSERT_FALSE(checkpoint->findings.empty());
  EXPECT_EQ(checkpoint->findings[0].cause, (Cause{CauseKind::kLayout}));
}

TEST(TorchZip, DoesNotInterpretAPackage) {
  const auto zip = small_zip({{"p/.data/extern_modules", "torch\n"},
                              {"p/model/model.pkl", pickled("N")},
                              {"p/.data/version", "6\n"}});
  EXPECT_TRUE(sniff_torch_zip(Source::memory("file", byte_vector(zip.bytes))));
  const auto checkpoint = read(zip.bytes);
  ASSERT_FALSE(checkpoint);
  EXPECT_EQ(checkpoint.error().kind, ErrorKind::kUnsupported);
}

TEST(TorchZip, RefusesAnArchiveWithoutTopFolder) {
  expect_error(small_zip({{"data.pkl", pickled("N")}}).bytes, CauseKind::kLayout, 0);
}

TEST(TorchZip, TellsAHoleFromAWriterWithoutChecksums) {
  // skip_data(): the pickle has a CRC, the storage has none and is zeros.
  auto zip = torch_archive(pickled(pickle_tensor()), std::string(16, '\0'));
  const std::uint64_t header = zip.header_offsets[2];
  const std::uint64_t central = offset_of(zip.bytes, "PK\1\2", zip.directory_offset);
  std::uint64_t third = central;
  for (int i = 0; i < 2; ++i) third = offset_of(zip.bytes, "PK\1\2", third + 4);
  zip.bytes.replace(header + 14, 4, 4, '\0');
  zip.bytes.replace(third + 16, 4, 4, '\0');
  expect_failure(zip.bytes, CauseKind::kTrunc, header + 38);
}

TEST(TorchZip, FailsOnAPickleThatWouldRunCode) {
  auto zip = small_zip({{"a/data.pkl", pickled("cos\nsystem\n" + pickle_string("id") + "\x85R")},
                        {"a/version", "3\n"}});
  expect_failure(zip.bytes, CauseKind::kPickleDep, 42);
}

TEST(TorchZip, ListsTensorsInsideOfUnknownObjects) {
  const std::string object = "cmine\nThing\n)\x81" + pickle_dict({{"w", pickle_tensor()}}) + "b";
  const auto checkpoint = read(torch_archive(pickled(pickle_dict({{"x", object}})), kFour).bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_EQ(std::get<Opaque>(entry_at(*checkpoint, "x").node).type, "mine.Thing");
  EXPECT_TRUE(std::holds_alternative<Tensor>(entry_at(*checkpoint, "x.w").node));
}

TEST(TorchZip, StopsAtObjectsThatContainThemselves) {
  const auto checkpoint =
      read(small_zip({{"a/data.pkl", pickled("]q\1h\1a")}, {"a/version", "3\n"}}).bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_EQ(std::get<Opaque>(entry_at(*checkpoint, "0").node).type,
            "reference to an enclosing object");
  EXPECT_EQ(checkpoint->uninterpreted.size(), 1U);  // it has no end and no paths
}

TEST(TorchZip, TakesABackReferenceOfAnObjectForWhatItIs) {
  const auto checkpoint =
      read(small_zip({{"a/data.pkl", pickled("cm\nC\n)\x81q\1}" + pickle_string("up") + "h\1sb")},
                      {"a/version", "3\n"}})
               .bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_EQ(std::get<Opaque>(entry_at(*checkpoint, "up").node).type,
            "reference to an enclosing object");
  EXPECT_TRUE(checkpoint->uninterpreted.empty());
}

TEST(TorchZip, RefusesAPickleThatUnfoldsWithoutEnd) {
  // Each list holds the one before twice: 2^40 entries in 300 bytes.
  std::string body = "]q\1K\1a";
  for (char i = 1; i <= 40; ++i) {
    body += std::string("]q") + static_cast<char>(i + 1) + "(h" + i + "h" + i + "e";
  }
  const auto checkpoint =
      read(small_zip({{"a/data.pkl", pickled("(" + body + "l")}, {"a/version", "3\n"}}).bytes);
  ASSERT_FALSE(checkpoint);
  EXPECT_EQ(checkpoint.error().kind, ErrorKind::kUnsupported);
}

TEST(TorchZip, FindsAKeyThatIsSetTwice) {
  const std::string body = pickle_dict({{"k", "K\1"}, {"k", "K\2"}});
  auto zip = small_zip({{"a/data.pkl", pickled(body)}, {"a/version", "3\n"}});
  expect_failure(zip.bytes, CauseKind::kLayout, offset_of(zip.bytes, pickle_string("k")));
  const auto checkpoint = read(zip.bytes);
  EXPECT_EQ(std::get<Value>(entry_at(*checkpoint, "k").node), Value(std::int64_t{2}));
}

TEST(TorchZip, KeepsQuantizedSparseAndMetaTensorsWhole) {
  const std::string quantized = "ctorch._utils\n_rebuild_qtensor\n((" + pickle_string("storage") +
                                "ctorch\nQInt8Storage\n" + pickle_string("0") +
                                pickle_string("cpu") + pickle_int(16) + "tQ" + pickle_int(0) +
                                testing::pickle_tuple({16}) + testing::pickle_tuple({1}) +
                                "(ctorch\nper_tensor_affine\nG\x3f\xf0\0\0\0\0\0\0K\x03t"s +
                                "\x89"
                                "ccollections\nOrderedDict\n)RtR";
  const std::string meta = "ctorch._utils\n_rebuild_meta_tensor_no_storage\n(ctorch\nfloat32\n" +
                           testing::pickle_tuple({3, 3}) + testing::pickle_tuple({3, 1}) + "\x89tR";
  const auto zip = torch_archive(pickled(pickle_dict({{"q", quantized}, {"m", meta}})), kFour);
  const auto checkpoint = read(zip.bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  const auto& composite =
      *std::get<std::shared_ptr<const Composite>>(entry_at(*checkpoint, "q").node);
  EXPECT_EQ(composite.kind, "quantized");
  EXPECT_EQ(std::get<Tensor>(composite.parts.at(0).second).dtype, DType::kQint8);
  EXPECT_EQ(std::get<Value>(composite.parts.at(2).second), Value(1.0));
  EXPECT_TRUE(std::get<Tensor>(entry_at(*checkpoint, "m").node).absent);
}

}  // namespace
}  // namespace ckptverify
