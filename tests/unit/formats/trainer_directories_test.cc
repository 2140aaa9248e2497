// Directories of trainers: good ones by real frameworks against what those read, and what each
// missing, extra or older part is called. The bad ones of fixtures/files are run by the corpus
// test; here are the rules that need a changed byte or name.
#include <map>

#include "formats/accelerate.h"
#include "formats/hf_model.h"
#include "formats/hf_trainer.h"
#include "formats/lightning.h"
#include "formats/rank_files.h"
#include "tests/unit/formats/format_fixture.h"

namespace ckptverify {
namespace {

using fixture::FileBytes;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Directory = std::map<std::string, FileBytes>;

Directory load(const std::string& relative) {
  Directory directory;
  const std::filesystem::path root = fixture::good(relative);
  for (const auto& file : std::filesystem::recursive_directory_iterator(root))
    if (file.is_regular_file())
      directory[file.path().lexically_relative(root)] = fixture::read_file(file.path());
  EXPECT_FALSE(directory.empty()) << root;
  return directory;
}

FileBytes bytes_of(std::string_view text) {
  const Bytes bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

Result<Checkpoint> read(Directory directory, const std::string& name = "x") {
  return formats().read(Source::memory_directory(name, std::move(directory)));
}

std::vector<std::string> bad_messages(const Result<Checkpoint>& checkpoint) {
  if (!checkpoint) return {checkpoint.error().text()};
  std::vector<std::string> messages;
  for (const Finding& finding : checkpoint->findings)
    if (fixture::is_bad(finding))
      messages.push_back((finding.cause ? finding.cause->id() : "-") + " " + finding.message);
  return messages;
}

/// One fault of that cause, whose message says so.
void expect_fault(Directory directory, const std::string& cause, const std::string& message,
                  const std::string& name = "x") {
  EXPECT_THAT(bad_messages(read(std::move(directory), name)),
              ElementsAre(testing::AllOf(testing::StartsWith(cause + " "), HasSubstr(message))));
}

const char* const kSharded = "hf-model/good/sharded";
const char* const kIndex = "model.safetensors.index.json";

void replace(Directory& directory, const std::string& file, const std::string& from,
             const std::string& to) {
  std::string text(as_text(directory.at(file)));
  ASSERT_NE(text.find(from), std::string::npos) << from;
  text.replace(text.find(from), from.size(), to);
  directory[file] = bytes_of(text);
}

TEST(HfModel, ReadsShardsOfTheRealWriter) {
  const auto source = Source::open(fixture::good(kSharded));
  ASSERT_TRUE(source);
  EXPECT_TRUE(sniff_hf_model(*source));
  const auto checkpoint = formats().read(*source);
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_EQ(checkpoint->format, "hf-model");
  EXPECT_THAT(checkpoint->findings, IsEmpty());
  fixture::expect_oracle(*checkpoint, fixture::good("hf-model/good/sharded.oracle.json"));
  fixture::expect_whole_coverage(*checkpoint);
  const Entry* entry = find_entry(*checkpoint, "model.transformer.wte.weight");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->component, Component::kModel);
  EXPECT_EQ(relative_path(*entry), "transformer.wte.weight");
}

TEST(HfModel, NamesTheTensorsOfAMissingShard) {
  Directory directory = load(kSharded);
  directory.erase("model-00004-of-00004.safetensors");
  expect_fault(std::move(directory), "shard-missing",
               "model-00004-of-00004.safetensors: shard is missing; found no file, expected one "
               "with ");
}

TEST(HfModel, HoldsIndexAndShardsAgainstEachOther) {
  Directory directory = load(kSharded);
  replace(directory, kIndex, "\"transformer.h.0.attn.c_attn.bias\": \"model-00001",
          "\"transformer.h.0.attn.c_attn.bias\": \"model-00002");
  expect_fault(std::move(directory), "st-struct",
               "transformer.h.0.attn.c_attn.bias: lies in another shard than the index says; found "
               "model-00001-of-00004.safetensors, expected model-00002-of-00004.safetensors");
  directory = load(kSharded);
  replace(directory, kIndex, "\"transformer.h.0.attn.c_attn.bias\"", "\"another\"");
  EXPECT_THAT(
      bad_messages(read(std::move(directory))),
      ElementsAre(HasSubstr("transformer.h.0.attn.c_attn.bias: is not in the index; found it in "
                            "model-00001-of-00004.safetensors"),
                  HasSubstr("another: is not in its shard; found nothing, expected it in "
                            "model-00001-of-00004.safetensors")));
}

TEST(HfModel, RefusesAnIndexThatLeavesTheDirectory) {
  for (const std::string name : {"../model", "a/model", "/model", "..", ""}) {
    Directory directory = load(kSharded);
    replace(directory, kIndex, "\"model-00001-of-00004.safetensors\"", "\"" + name + "\"");
    expect_fault(std::move(directory), "st-struct", "is no plain file name; found \"" + name);
  }
}

TEST(HfModel, WarnsOfATotalThatIsNotTheSum) {
  Directory directory = load(kSharded);
  replace(directory, kIndex, "118272", "118273");
  const auto checkpoint = read(std::move(directory));
  ASSERT_TRUE(checkpoint);
  ASSERT_EQ(checkpoint->findings.size(), 1U);
  EXPECT_EQ(checkpoint->findings[0].status, Status::kWarn);
  EXPECT_THAT(checkpoint->findings[0].message, HasSubstr("bytes, expected 118272"));
}

TEST(HfModel, SaysThatAnAdapterIsOnlyThat) {
  const auto checkpoint = read(load("hf-model/good/peft_lora"));
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_THAT(bad_messages(checkpoint), IsEmpty());
  ASSERT_EQ(checkpoint->findings.size(), 1U);
  EXPECT_THAT(checkpoint->findings[0].message, HasSubstr("only the adapters are here"));
  EXPECT_NE(find_entry(*checkpoint, "adapter_config.peft_type"), nullptr);
}

const char* const kState = "accelerate/good/state";

TEST(Accelerate, ReadsWhatTheRealWriterWrote) {
  const auto checkpoint = read(load(kState));
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_EQ(checkpoint->format, "accelerate");
  EXPECT_THAT(checkpoint->findings, IsEmpty());
  fixture::expect_oracle(*checkpoint, fixture::good("accelerate/good/state.oracle.json"));
  fixture::expect_whole_coverage(*checkpoint);
  const Entry* rng = find_entry(*checkpoint, "rng.0.torch_manual_seed");
  ASSERT_NE(rng, nullptr);
  EXPECT_EQ(component_label(*rng), "rng.0");
  const Entry* step = find_entry(*checkpoint, "step.0.step");
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(component_label(*step), "step.0");
  EXPECT_EQ(relative_path(*step), "step");
}

TEST(Accelerate, KeepsASecondModelApartFromTheFirst) {
  const auto checkpoint = read(load("accelerate/good/several"));
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_THAT(bad_messages(checkpoint), IsEmpty());
  const Entry* first = find_entry(*checkpoint, "model.0.weight");
  const Entry* second = find_entry(*checkpoint, "model_1.0.weight");
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->component, Component::kModel);
  EXPECT_NE(relative_path(*first), relative_path(*second));
  EXPECT_NE(find_entry(*checkpoint, "rng.1.torch_manual_seed"), nullptr);
  EXPECT_EQ(find_entry(*checkpoint, "data_cursor.dl_state_dict.epoch")->component,
            Component::kDataCursor);
}

/// A Trainer's checkpoint as the generator makes it, mended where it was broken.
Directory trainer() {
  return load("hf-trainer/bad/old_both/checkpoint-10");
}

TEST(HfTrainer, PutsEveryFileUnderWhatItIsFor) {
  const auto checkpoint = read(trainer(), "checkpoint-10");
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_EQ(checkpoint->format, "hf-trainer");
  EXPECT_THAT(bad_messages(checkpoint), IsEmpty());
  for (const auto& [path, component] :
       std::map<std::string, Component>{{"model.0.weight", Component::kModel},
                                        {"optimizer.state.0.exp_avg", Component::kOptimizer},
                                        {"scheduler.last_epoch", Component::kScheduler},
                                        {"rng.cpu", Component::kRng},
                                        {"step.global_step", Component::kStep},
                                        {"config.hidden_size", Component::kConfig},
                                        {"trainer_state.log_history.0.loss", Component::kOther}}) {
    const Entry* entry = find_entry(*checkpoint, path);
    ASSERT_NE(entry, nullptr) << path;
    EXPECT_EQ(entry->component, component) << path;
  }
}

TEST(HfTrainer, ComparesTheStepWithTheDirectorysName) {
  EXPECT_THAT(bad_messages(read(trainer(), "a copy")), IsEmpty());
  expect_fault(trainer(), "step-count",
               "trainer_state.json: has another step than its directory; found global_step 10, "
               "expected 12",
               "checkpoint-12");
}

TEST(HfTrainer, IsRecognisedBeforeItsLastFileIsWritten) {
  Directory directory = trainer();
  directory.erase("trainer_state.json");
  expect_fault(directory, "uncommitted", "trainer_state.json: is missing", "checkpoint-10");
  expect_fault(directory, "uncommitted", "trainer_state.json: is missing", "renamed");
}

TEST(HfTrainer, CallsEachLostPartByItsCause) {
  for (const auto& [file, cause] :
       std::map<std::string, std::string>{{"optimizer.pt", "opt-lost"},
                                          {"scheduler.pt", "sched-lost"},
                                          {"rng_state.pth", "rng-lost"},
                                          {"model.safetensors", "shard-missing"}}) {
    Directory directory = trainer();
    directory.erase(file);
    expect_fault(std::move(directory), cause, "");
  }
}

TEST(HfTrainer, TakesNoFileForAWholeOneThatIsCut) {
  for (const auto& [file, bytes] : trainer()) {
    Directory directory = trainer();
    directory[file].resize(bytes.size() / 2);
    EXPECT_THAT(bad_messages(read(std::move(directory), "checkpoint-10")), testing::SizeIs(1))
        << file;
  }
}

const char* const kLightning = "lightning/good/step=4.ckpt";

TEST(Lightning, ReadsShardsAndTheRestAsOneState) {
  const auto checkpoint = read(load(kLightning), "step=4.ckpt");
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_EQ(checkpoint->format, "lightning");
  EXPECT_THAT(checkpoint->findings, IsEmpty());
  fixture::expect_oracle(*checkpoint, fixture::good("lightning/good/step=4.ckpt.oracle.json"));
  fixture::expect_whole_coverage(*checkpoint);
  for (const auto& [path, component] : std::map<std::string, Component>{
           {"state_dict.0.weight", Component::kModel},
           {"optimizer_0.state.0.weight.exp_avg", Component::kOptimizer},
           {"lr_schedulers.0.last_epoch", Component::kScheduler},
           {"global_step", Component::kStep}}) {
    const Entry* entry = find_entry(*checkpoint, path);
    ASSERT_NE(entry, nullptr) << path;
    EXPECT_EQ(entry->component, component) << path;
  }
}

TEST(Lightning, SaysWhichOfItsTwoPartsIsMissing) {
  Directory directory = load(kLightning);
  directory.erase("meta.pt");
  expect_fault(std::move(directory), "uncommitted", "meta.pt: is missing", "step=4.ckpt");
  directory = load(kLightning);
  directory.erase(".metadata");
  expect_fault(std::move(directory), "uncommitted", "", "step=4.ckpt");
}

TEST(RankFiles, KeepsOneOfWhatAllRanksSavedAlike) {
  const auto checkpoint = read(load("rank-files/good/replicated"));
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_EQ(checkpoint->format, "rank-files");
  EXPECT_THAT(checkpoint->findings, IsEmpty());
  fixture::expect_whole_coverage(*checkpoint);
  const Entry* weight = find_entry(*checkpoint, "model.0.weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_FALSE(weight->rank);
  EXPECT_NE(find_entry(*checkpoint, "step"), nullptr);
  for (const std::string rank : {"0", "1"}) {
    const Entry* rng = find_entry(*checkpoint, "rng." + rank + ".cpu");
    ASSERT_NE(rng, nullptr);
    EXPECT_EQ(component_label(*rng), "rng." + rank);
    EXPECT_EQ(relative_path(*rng), "cpu");
  }
}

TEST(RankFiles, TellsShardsOfRanksApart) {
  const auto checkpoint = read(load("rank-files/good/sharded"));
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_THAT(checkpoint->findings, IsEmpty());
  for (const std::string rank : {"0", "1"}) {
    const Entry* part = find_entry(*checkpoint, "model." + rank + ".0.weight");
    ASSERT_NE(part, nullptr);
    EXPECT_EQ(component_label(*part), "model." + rank);
  }
  const Entry* shared = find_entry(*checkpoint, "scheduler.last_epoch");
  ASSERT_NE(shared, nullptr);
  EXPECT_FALSE(shared->rank);
}

TEST(RankFiles, NamesComponentsAfterTheirFiles) {
  const auto checkpoint = read(load("rank-files/good/components"));
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_THAT(bad_messages(checkpoint), IsEmpty());
  EXPECT_NE(find_entry(*checkpoint, "model.0.weight"), nullptr);
  EXPECT_NE(find_entry(*checkpoint, "optimizer.state.0.exp_avg"), nullptr);
  EXPECT_NE(find_entry(*checkpoint, "rng.1.cpu"), nullptr);
}

FileBytes safetensors_of(const std::string& name) {
  std::string header =
      "{\"" + name + "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  return bytes_of(file + header + "\x01\x02\x03\x04");
}

TEST(RankFiles, ReadsTheStateBesideWeightsThatAreNamedAsTransformersDoes) {
  const Directory directory = {{"model.safetensors", safetensors_of("w")},
                               {"optimizer.safetensors", safetensors_of("momentum.w")},
                               {"rest.safetensors", safetensors_of("ema.w")},
                               {"state.json", bytes_of("{\"step\": 5}")},
                               {"sampler.txt", bytes_of("80")}};
  const auto checkpoint = read(directory);
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_EQ(checkpoint->format, "rank-files");
  EXPECT_THAT(bad_messages(checkpoint), IsEmpty());
  const auto component = [&](const std::string& path) {
    const Entry* entry = find_entry(*checkpoint, path);
    return entry == nullptr ? "nothing" : component_name(entry->component);
  };
  EXPECT_EQ(component("model.w"), "model");
  EXPECT_EQ(component("optimizer.momentum.w"), "optimizer");
  EXPECT_THAT(checkpoint->unread, ElementsAre("sampler.txt"));
  Directory cut = directory;
  cut["optimizer.safetensors"].resize(20);
  EXPECT_THAT(bad_messages(read(cut)), Not(IsEmpty()));
}

TEST(RankFiles, TellsASecondStateOfOneKindByItsName) {
  Directory directory = load("rank-files/good/components");
  directory["weights.pt"] = directory.at("model.pt");
  const auto checkpoint = read(std::move(directory));
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_THAT(bad_messages(checkpoint), IsEmpty());
  const Entry* second = find_entry(*checkpoint, "weights.0.weight");
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->component, Component::kModel);
  EXPECT_EQ(relative_path(*second), "weights.0.weight");
}

TEST(HfTrainer, ReadsFullyShardedDirectories) {
  const auto checkpoint = read(load("hf-trainer/good/fsdp/checkpoint-10"), "checkpoint-10");
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_THAT(checkpoint->findings, IsEmpty());
  fixture::expect_oracle(*checkpoint,
                         fixture::good("hf-trainer/good/fsdp/checkpoint-10.oracle.json"));
  fixture::expect_whole_coverage(*checkpoint);
}

TEST(RankFiles, TakesOnlyFilesWhoseNamesBelongTogether) {
  const auto is_one = [](const std::vector<std::string>& names) {
    Directory directory;
    for (const std::string& name : names) directory[name] = bytes_of("x");
    return sniff_rank_files(Source::memory_directory("x", directory));
  };
  EXPECT_TRUE(is_one({"rank0.pt", "rank1.pt", "extra.pt"}));
  EXPECT_TRUE(is_one({"ckpt.pt", "rng_state_0.pth", "rng_state_1.pth"}));
  EXPECT_TRUE(is_one({"model.pt", "optimizer.pt", "scheduler.pt", "notes.txt"}));
  EXPECT_TRUE(is_one({"model.pt", "optimizer.pt", "optimizer_1.pt"}));
  EXPECT_TRUE(is_one({"anything.pt"}));
  EXPECT_TRUE(is_one({"ckpt.pt", "scheduler.pt"}));
  EXPECT_FALSE(is_one({"best.ckpt", "weights.ckpt"}));
  EXPECT_FALSE(is_one({"model.pt", "weights.pt"}));
  EXPECT_FALSE(is_one({"export.safetensors", "torch.pt"}));
}

TEST(RankFiles, LeavesASeriesOfStepsAlone) {
  Directory directory;
  directory["ckpt_5.pt"] = directory["ckpt_10.pt"] = bytes_of("x");
  EXPECT_FALSE(sniff_rank_files(Source::memory_directory("x", directory)));
  directory.erase("ckpt_5.pt");
  EXPECT_TRUE(sniff_rank_files(Source::memory_directory("x", directory)));
}

}  // namespace
}  // namespace ckptverify
