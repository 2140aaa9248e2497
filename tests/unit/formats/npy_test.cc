// NumPy's files against NumPy, and what damage to them amounts to.
#include "formats/npy.h"

#include "tests/unit/formats/every_flip.h"
#include "tests/unit/formats/format_fixture.h"
#include "tests/unit/formats/torch_fixture.h"

namespace ckptverify {
namespace {

using fixture::FileBytes;
using ::testing::HasSubstr;

Result<Checkpoint> read_array(FileBytes bytes) {
  return read_npy(Source::memory("x.npy", std::move(bytes)), formats());
}

FileBytes good_array(const std::string& name) {
  return fixture::read_file(fixture::good("npy/good/" + name + ".npy"));
}

FileBytes array_of(std::string text, std::size_t size) {
  text += std::string(63 - (text.size() + 10) % 64, ' ') + "\n";
  std::string file = "\x93NUMPY" + std::string("\1\0", 2) + static_cast<char>(text.size()) +
                     std::string(1, static_cast<char>(text.size() >> 8)) + text;
  file.resize(file.size() + size);
  const Bytes bytes = as_bytes(file);
  return {bytes.begin(), bytes.end()};
}

class NpyFiles : public ::testing::TestWithParam<std::string> {};

TEST_P(NpyFiles, AreReadAsNumpyReadsThem) {
  const auto checkpoint = read_array(good_array(GetParam()));
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  fixture::expect_oracle(*checkpoint, fixture::good("npy/good/" + GetParam() + ".oracle.json"));
  fixture::expect_whole_coverage(*checkpoint);
}

INSTANTIATE_TEST_SUITE_P(All, NpyFiles,
                         ::testing::Values("float32", "fortran", "big", "bool", "scalar",
                                           "version_2", "version_3"));

TEST(Npy, EveryPrefixIsRefused) {
  testing::expect_every_prefix_refused(good_array("float32"), read_array);
}

TEST(Npy, EveryFlipIsNoticed) {
  testing::expect_every_flip_noticed(good_array("float32"), read_array);
}

struct BadHeader {
  std::string text;
  std::string message;
};

class BadHeaders : public ::testing::TestWithParam<BadHeader> {};

TEST_P(BadHeaders, AreRefusedAsDamage) {
  const auto checkpoint = read_array(array_of(GetParam().text, 8));
  ASSERT_FALSE(checkpoint);
  EXPECT_EQ(fixture::cause_of(checkpoint.error()), "bitrot");
  EXPECT_THAT(checkpoint.error().message, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadHeaders,
    ::testing::Values(
        BadHeader{"{'descr': '<f4', 'fortran_order': False, }", "lacks a key"},
        BadHeader{"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
                  "unknown or repeated key; found 'descr'"},
        BadHeader{"{'descr': '<f4', 'fortran_order': False, 'shape': exit(), }",
                  "found 'e', expected '('"},
        BadHeader{"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }",
                  "expected True or False"},
        BadHeader{"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }",
                  "expected a dimension of up to 64 bits"},
        BadHeader{"{'descr': '|f4', 'fortran_order': False, 'shape': (2,), }",
                  "descr has no byte order"},
        BadHeader{"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } 1",
                  "expected spaces and one end of the line"}));

TEST(Npy, NamesRecordsAsNotInterpreted) {
  const auto checkpoint = read_array(array_of(
      "{'descr': [('a', '<i4'), ('b', '<f4')], 'fortran_order': False, 'shape': (1,), }", 8));
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_TRUE(checkpoint->entries.empty());
  ASSERT_EQ(checkpoint->uninterpreted.size(), 1U);
  EXPECT_THAT(checkpoint->uninterpreted[0], HasSubstr("[('a', '<i4'), ('b', '<f4')]"));
}

std::vector<std::string> failures_of(const Source& source) {
  const auto checkpoint = formats().read(source);
  EXPECT_TRUE(checkpoint) << checkpoint.error().text();
  std::vector<std::string> failed;
  for (const Finding& finding : checkpoint->findings)
    if (finding.status == Status::kFail) failed.push_back(finding.message);
  return failed;
}

TEST(Npz, PlacesWhatIsWrongWithAnArrayInTheFile) {
  const FileBytes array =
      array_of("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 9);  // one too many
  const std::string zip = testing::small_zip({{"a.npy", std::string(as_text(Bytes(array)))}}).bytes;
  const std::size_t payload = zip.find("\x93NUMPY");
  const Bytes bytes = as_bytes(zip);
  EXPECT_THAT(
      failures_of(Source::memory("x.npz", {bytes.begin(), bytes.end()})),
      ::testing::ElementsAre("a.npy in x.npz: byte " + std::to_string(payload + array.size() - 1) +
                             ": bytes follow the array; found " + std::to_string(array.size()) +
                             " bytes, expected " + std::to_string(array.size() - 1)));
  const auto deflated = Source::open(fixture::good("npz/bad/array_too_long.npz"));
  ASSERT_TRUE(deflated);
  EXPECT_THAT(failures_of(*deflated),
              ::testing::ElementsAre(HasSubstr("byte 136 once decoded: bytes follow the array")));
}

class NpzFiles : public ::testing::TestWithParam<std::string> {};

TEST_P(NpzFiles, AreReadAsNumpyReadsThem) {
  const auto source = Source::open(fixture::good("npz/good/" + GetParam() + ".npz"));
  ASSERT_TRUE(source);
  const auto checkpoint = formats().read(*source);
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_EQ(checkpoint->format, "npz");
  fixture::expect_oracle(*checkpoint, fixture::good("npz/good/" + GetParam() + ".oracle.json"));
  fixture::expect_whole_coverage(*checkpoint);
  for (const Finding& finding : verify_checksums(*checkpoint))
    EXPECT_EQ(finding.status, Status::kPass) << finding.message;
}

INSTANTIATE_TEST_SUITE_P(All, NpzFiles, ::testing::Values("stored", "deflated"));

}  // namespace
}  // namespace ckptverify
