// Distributed checkpoints: what PyTorch reads, from however many ranks; what each damage is called
// is in fixtures/files/dcp/corpus.json; no cut and no changed byte goes unnoticed.
#include "formats/dcp.h"

#include "ckptverify/check.h"
#include "formats/container/dcp_metadata.h"
#include "formats/container/dcp_tiling.h"
#include "formats/dcp_safetensors.h"
#include "formats/torch_zip.h"
#include "tests/unit/formats/format_fixture.h"

namespace ckptverify {
namespace {

using fixture::FileBytes;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Directory = std::map<std::string, FileBytes>;

Directory load(const std::string& relative) {
  Directory directory;
  for (const auto& file : std::filesystem::directory_iterator(fixture::good(relative)))
    directory[file.path().filename()] = fixture::read_file(file.path());
  return directory;
}

Result<Checkpoint> read(Directory directory, Depth depth = Depth::kWhole) {
  return read_dcp(Source::memory_directory("run/step-4", std::move(directory)),
                  formats().at(depth));
}

Checkpoint read_good(const std::string& relative) {
  auto checkpoint = read(load(relative));
  EXPECT_TRUE(checkpoint) << relative << ": " << checkpoint.error().text();
  return checkpoint ? *std::move(checkpoint) : Checkpoint();
}

Digest whole_of(const Checkpoint& checkpoint) {
  const auto print = fingerprint(checkpoint, Threads{1});
  EXPECT_TRUE(print) << print.error().text();
  return print ? print->whole : Digest();
}

std::string pickled(std::string_view body) {
  return "\x80\x04" + std::string(body) + ".";
}

TEST(Dcp, ReadsEveryLayoutAsPyTorchDoes) {
  for (const std::string name : {"tiny", "many_files", "zstd", "per_rank", "titan", "extra_state",
                                 "bare_model", "sharded_tensors"}) {
    SCOPED_TRACE(name);
    const Checkpoint checkpoint = read_good("dcp/good/" + name + "/step-4");
    fixture::expect_oracle(checkpoint, fixture::good("dcp/good/" + name + "/oracle.json"));
    fixture::expect_whole_coverage(checkpoint);
    EXPECT_TRUE(
        std::none_of(checkpoint.findings.begin(), checkpoint.findings.end(), fixture::is_bad));
    EXPECT_THAT(checkpoint.uninterpreted, IsEmpty());
  }
}

TEST(Dcp, OneStateHasOneFingerprintHoweverItIsCut) {
  const auto file = Source::open(fixture::good("dcp/good/one_state/plain.pt"));
  ASSERT_TRUE(file);
  const auto plain = read_torch_zip(*file, formats());
  ASSERT_TRUE(plain) << plain.error().text();
  for (const std::string name : {"world1", "rows2", "columns2", "grid4"}) {
    const Checkpoint checkpoint = read_good("dcp/good/one_state/" + name);
    fixture::expect_oracle(checkpoint, fixture::good("dcp/good/one_state/oracle.json"));
    EXPECT_EQ(whole_of(checkpoint), whole_of(*plain)) << name;
  }
}

TEST(Dcp, DecodedItemsAreTheStoredOnes) {
  EXPECT_EQ(whole_of(read_good("dcp/good/zstd/step-4")),
            whole_of(read_good("dcp/good/tiny/step-4")));
}

TEST(Dcp, PutsTogetherChunksOfAllDimensions) {
  const Checkpoint checkpoint = read_good("dcp/good/one_state/grid4");
  const Entry* entry = find_entry(checkpoint, "model.embed.weight");
  ASSERT_NE(entry, nullptr);
  const auto& tensor = std::get<Tensor>(entry->node);
  EXPECT_THAT(tensor.shape, ElementsAre(7, 6));
  EXPECT_EQ(tensor.pieces.size(), 4U);
}

TEST(Dcp, TellsComponentsAndRanksOfTorchtitan) {
  const Checkpoint checkpoint = read_good("dcp/good/titan/step-4");
  const auto label = [&](std::string_view path) {
    const Entry* entry = find_entry(checkpoint, path);
    return entry == nullptr ? "none" : component_label(*entry);
  };
  EXPECT_EQ(label("layers.0.wq.weight"), "model");
  EXPECT_EQ(label("optimizer.state.norm.weight.exp_avg"), "optimizer");
  EXPECT_EQ(label("lr_scheduler.last_epoch"), "scheduler");
  EXPECT_EQ(label("train_state.step"), "step");
  EXPECT_EQ(label("dataloader.dp_rank_0"), "data_cursor.0");
  EXPECT_EQ(label("dataloader.dp_rank_1"), "data_cursor.1");
}

TEST(Dcp, KeepsApartWhatRanksThatSaveAloneStoreDifferently) {
  const Checkpoint checkpoint = read_good("dcp/good/per_rank/step-4");
  for (const std::string path : {"rng.0", "rng.1"}) {
    const Entry* entry = find_entry(checkpoint, path);
    ASSERT_NE(entry, nullptr) << path;
    EXPECT_EQ(component_label(*entry), path);
  }
  EXPECT_NE(find_entry(checkpoint, "model.weight"), nullptr);
}

TEST(Dcp, ABareStateDictIsAModel) {
  const Checkpoint checkpoint = read_good("dcp/good/bare_model/step-4");
  for (const Entry& entry : checkpoint.entries) {
    EXPECT_EQ(entry.component, Component::kModel) << entry.path;
    EXPECT_EQ(relative_path(entry), entry.path);
  }
}

TEST(Dcp, AListingOpensNoTensor) {
  Directory directory = load("dcp/good/tiny/step-4");
  const auto listing = read(directory, Depth::kListing);
  ASSERT_TRUE(listing) << listing.error().text();
  const Checkpoint whole = read_good("dcp/good/tiny/step-4");
  ASSERT_EQ(listing->entries.size(), whole.entries.size());
  for (std::size_t i = 0; i < whole.entries.size(); ++i) {
    EXPECT_EQ(listing->entries[i].path, whole.entries[i].path);
    const auto* tensor = std::get_if<Tensor>(&listing->entries[i].node);
    if (tensor == nullptr) continue;
    EXPECT_EQ(tensor->shape, std::get<Tensor>(whole.entries[i].node).shape);
    EXPECT_THAT(tensor->pieces, IsEmpty());
  }
}

TEST(Dcp, EveryCutFileIsRefused) {
  const Directory good = load("dcp/good/tiny/step-4");
  for (const auto& [name, bytes] : good) {
    for (std::size_t size = 0; size < bytes.size(); size += size < 16 ? 1 : 127) {
      Directory cut = good;
      cut[name].resize(size);
      const auto checkpoint = read(std::move(cut));
      EXPECT_TRUE(!checkpoint || std::any_of(checkpoint->findings.begin(),
                                             checkpoint->findings.end(), fixture::is_bad))
          << "the first " << size << " bytes of " << name << " pass for the whole";
    }
  }
}

TEST(Dcp, EveryFlipInAnItemIsNoticed) {
  const Directory good = load("dcp/good/tiny/step-4");
  const auto original = read(good);
  ASSERT_TRUE(original);
  const Digest before = whole_of(*original);
  std::uint32_t file = 0;
  for (; original->files[file].name() != "__0_0.distcp"; ++file) {
  }
  const std::size_t size = good.at("__0_0.distcp").size();
  for (std::size_t i = 0; i < size; i += 7) {
    Directory bad = good;
    bad["__0_0.distcp"][i] ^= std::byte{1} << (i % 8);
    if (fixture::owner_of(*original, file, i) == Owner::kUnverifiable) continue;
    EXPECT_TRUE(fixture::notices(read(std::move(bad)), before)) << "byte " << i;
  }
}

TEST(Dcp, AnyFlipOfTheMetadataIsRead) {
  const Directory good = load("dcp/good/tiny/step-4");
  const Digest before = whole_of(read_good("dcp/good/tiny/step-4"));
  const std::size_t size = good.at(".metadata").size();
  std::size_t noticed = 0;
  std::size_t tried = 0;
  for (std::size_t i = 0; i < size; i += 5, ++tried) {
    Directory bad = good;
    bad[".metadata"][i] ^= std::byte{1} << (i % 8);
    if (fixture::notices(read(std::move(bad)), before)) ++noticed;
  }
  // The rest is what no reader needs: hints, ids, the classes' modules.
  EXPECT_GT(noticed * 2, tried);
}

TEST(Dcp, NamesNoFileOutsideOfTheDirectory) {
  Directory directory = load("dcp/good/tiny/step-4");
  std::string text(as_text(directory.at(".metadata")));
  for (std::size_t at = text.find("__0_0.distcp"); at != std::string::npos;
       at = text.find("__0_0.distcp"))
    text.replace(at, 12, "../etc/paswd");
  const Bytes bytes = as_bytes(text);
  directory[".metadata"] = {bytes.begin(), bytes.end()};
  const auto checkpoint = read(std::move(directory));
  ASSERT_TRUE(checkpoint);
  EXPECT_THAT(fixture::subjects_of(*checkpoint, "shard-missing"), ElementsAre("../etc/paswd"));
}

TEST(DcpSafetensors, ReadsTheShardsAsPyTorchDoes) {
  const auto source = Source::open(fixture::good("dcp-safetensors/good/hf_sharded/step-4"));
  ASSERT_TRUE(source);
  ASSERT_TRUE(sniff_dcp_safetensors(*source));
  const auto checkpoint = read_dcp_safetensors(*source, formats());
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  fixture::expect_oracle(*checkpoint, fixture::good("dcp-safetensors/good/hf_sharded/oracle.json"));
  fixture::expect_whole_coverage(*checkpoint);
}

TEST(DcpMetadata, ReadsChunksAndTheirPlaces) {
  const auto metadata = read_dcp_metadata(load("dcp/good/tiny/step-4").at(".metadata"));
  ASSERT_TRUE(metadata) << metadata.error().text();
  const auto weight = std::find_if(metadata->entries.begin(), metadata->entries.end(),
                                   [](const DcpEntry& e) { return e.name == "model.weight"; });
  ASSERT_NE(weight, metadata->entries.end());
  EXPECT_THAT(weight->keys, ElementsAre("model", "weight"));
  EXPECT_EQ(weight->dtype, DType::kFloat32);
  EXPECT_THAT(weight->shape, ElementsAre(6, 4));
  ASSERT_EQ(weight->chunks.size(), 2U);
  EXPECT_THAT(weight->chunks[1].offsets, ElementsAre(3, 0));
  EXPECT_THAT(weight->chunks[1].sizes, ElementsAre(3, 4));
  ASSERT_TRUE(weight->chunks[1].slice);
  EXPECT_EQ(metadata->files[weight->chunks[1].slice->file], "__1_0.distcp");
  EXPECT_EQ(metadata->version, "1.0.0");
}

TEST(DcpMetadata, RefusesWhatIsNoMetadata) {
  for (const std::string body : {"", "N", "}", "cm\nMetadata\n)\x81", "(", "R"}) {
    const std::string text = pickled(body);
    EXPECT_FALSE(read_dcp_metadata(as_bytes(text))) << body;
  }
}

/// A pickle's text of the dictionary {name: value, ...}, from names and values in turn.
std::string dictionary(std::vector<std::string> parts) {
  std::string text = "}(";
  for (std::size_t i = 0; i < parts.size(); i += 2)
    text += "\x8c" + std::string(1, static_cast<char>(parts[i].size())) + parts[i] + parts[i + 1];
  return text + "u";
}

std::string object(const std::string& name, const std::vector<std::string>& attributes) {
  return "cm\n" + name + "\n)\x81" + dictionary(attributes) + "b";
}

/// Metadata of one object, "x", in 4 bytes of "f", whose dictionaries are as they are given.
std::string metadata(const std::string& described, const std::string& stored) {
  return pickled(object("AnyName", {"state_dict_metadata", described, "storage_data", stored}));
}

TEST(DcpMetadata, TellsObjectsByTheirAttributesAndNotByTheirModules) {
  const std::string described = dictionary({"x", object("BytesStorageMetadata", {})});
  const std::string info =
      object("_StorageInfo", {"relative_path", "\x8c\1f", "offset", "K\7", "length", "K\4"});
  const std::string stored = "}" + object("MetadataIndex", {"fqn", "\x8c\1x"}) + info + "s";
  const std::string text = metadata(described, stored);
  const auto read = read_dcp_metadata(as_bytes(text));
  ASSERT_TRUE(read) << read.error().text();
  ASSERT_EQ(read->entries.size(), 1U);
  ASSERT_TRUE(read->entries[0].chunks.at(0).slice);
  EXPECT_EQ(read->entries[0].chunks[0].slice->offset, 7U);
  EXPECT_EQ(read->entries[0].chunks[0].slice->size, 4U);
  EXPECT_THAT(read->orphans, IsEmpty());
  // A subclass of dict that something else made is a dictionary all the same.
  const std::string ordered =
      metadata(described, "ccollections\nOrderedDict\n)R" + stored.substr(1));
  const auto again = read_dcp_metadata(as_bytes(ordered));
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_TRUE(again->entries[0].chunks[0].slice);
}

TEST(DcpMetadata, RefusesNumbersThatAreNone) {
  const std::string described = dictionary({"x", object("BytesStorageMetadata", {})});
  for (const std::string length : {"J\xff\xff\xff\xff", "N", "\x8c\1f", "\x88"}) {
    const std::string info =
        object("_StorageInfo", {"relative_path", "\x8c\1f", "offset", "K\7", "length", length});
    const std::string text =
        metadata(described, "}" + object("MetadataIndex", {"fqn", "\x8c\1x"}) + info + "s");
    const auto read = read_dcp_metadata(as_bytes(text));
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message, HasSubstr("no natural number"));
  }
}

TEST(DcpMetadata, RefusesNamesThatUnfoldWithoutEnd) {
  const std::string described = dictionary({"x", object("BytesStorageMetadata", {})});
  const std::string text = "X\x20\x4e" + std::string(2, '\0') + std::string(20'000, 'a');
  const auto item = [](const std::string& fqn, const std::string& path) {
    std::string pairs =
        "}(" + object("MetadataIndex", {"fqn", fqn}) + "q\1" +
        object("_StorageInfo", {"relative_path", path, "offset", "K\7", "length", "K\4"}) + "q\2";
    for (int i = 0; i < 10'000; ++i) pairs += "h\1h\2";
    return pairs + "u";
  };
  const std::string one = "\x8c\1x";
  const std::string shortest = metadata(described, item(one, one));
  EXPECT_TRUE(read_dcp_metadata(as_bytes(shortest)));
  for (const std::string& stored : {item(text, one), item(one, text)}) {
    const std::string whole = metadata(described, stored);
    const auto read = read_dcp_metadata(as_bytes(whole));
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().kind, ErrorKind::kUnsupported) << read.error().text();
  }
}

TEST(DcpMetadata, NamesWhatLoadingItWouldRun) {
  Directory directory = load("dcp/good/tiny/step-4");
  const std::string good(as_text(directory.at(".metadata")));
  // A call before the state that the root gets, whose result is thrown away.
  const std::string bad = good.substr(0, good.size() - 1) + "cposix\nsystem\n\x8c\4true\x85R0.";
  directory[".metadata"] = {as_bytes(bad).begin(), as_bytes(bad).end()};
  const auto checkpoint = read(std::move(directory));
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_THAT(fixture::subjects_of(*checkpoint, "pickle-dep"), ElementsAre("posix.system"));
}

struct Boxes {
  std::vector<std::vector<std::uint64_t>> numbers;  // offsets and sizes in turn
  std::vector<Box> boxes() const {
    std::vector<Box> made;
    for (std::size_t i = 0; i < numbers.size(); i += 2)
      made.push_back({numbers[i], numbers[i + 1]});
    return made;
  }
};

std::string fault_of(std::vector<std::uint64_t> shape, const Boxes& boxes) {
  const auto fault = tiling_fault(shape, boxes.boxes());
  return fault ? fault->message : "";
}

TEST(DcpTiling, AcceptsWhatTiles) {
  EXPECT_EQ(fault_of({4, 3}, {{{0, 0}, {2, 3}, {2, 0}, {2, 1}, {2, 1}, {2, 2}}}), "");
  EXPECT_EQ(fault_of({}, {{{}, {}}}), "");
  EXPECT_EQ(fault_of({0, 3}, {{}}), "");
  EXPECT_EQ(fault_of({3}, {{{0}, {3}, {3}, {0}}}), "");
}

TEST(DcpTiling, FindsWhatDoesNot) {
  EXPECT_THAT(fault_of({4, 3}, {{{0, 0}, {2, 3}, {2, 0}, {2, 2}}}), HasSubstr("leave a hole"));
  EXPECT_THAT(fault_of({4, 3}, {{{0, 0}, {3, 3}, {2, 0}, {2, 3}}}), HasSubstr("overlap"));
  EXPECT_THAT(fault_of({4}, {{{1}, {4}}}), HasSubstr("outside"));
  EXPECT_THAT(fault_of({}, {{{}, {}, {}, {}}}), HasSubstr("overlap"));
  EXPECT_THAT(fault_of({1ULL << 40, 1ULL << 40}, {{}}), HasSubstr("64 bits"));
  EXPECT_THAT(fault_of({8}, {{{~std::uint64_t{0}}, {2}}}), HasSubstr("outside"));
}

}  // namespace
}  // namespace ckptverify
