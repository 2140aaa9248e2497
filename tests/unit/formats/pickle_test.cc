#include "formats/encoding/pickle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "formats/encoding/pickle_globals.h"
#include "formats/encoding/python_names.h"
#include "tests/unit/formats/torch_fixture.h"

namespace ckptverify {
namespace {

using namespace std::string_literals;
using testing::pickle_int;
using testing::pickle_string;
using testing::pickled;

Result<PickleTree> read(const std::string& text) {
  return read_pickle(testing::byte_vector(text));
}

Value value_in(const std::string& text) {
  const auto tree = read(text);
  EXPECT_TRUE(tree) << tree.error().text();
  return tree ? tree->root().value() : Value();
}

void expect_error(const std::string& text, CauseKind cause, std::uint64_t offset) {
  const auto tree = read(text);
  ASSERT_FALSE(tree) << "accepted";
  EXPECT_EQ(tree.error().offset, offset) << tree.error().text();
  ASSERT_TRUE(tree.error().cause) << tree.error().text();
  EXPECT_EQ(tree.error().cause->kind, cause) << tree.error().text();
}

TEST(Pickle, ReadsScalarsOfEveryProtocol) {
  EXPECT_EQ(value_in("N."), Value(Null{}));
  EXPECT_EQ(value_in("I01\n."), Value(true));
  EXPECT_EQ(value_in("I00\n."), Value(false));
  EXPECT_EQ(value_in("I-12\n."), Value(std::int64_t{-12}));
  EXPECT_EQ(value_in("L7L\n."), Value(std::int64_t{7}));
  EXPECT_EQ(value_in("F1.5\n."), Value(1.5));
  EXPECT_EQ(value_in("S'a\\x62\\n'\n."), Value("ab\n"s));
  EXPECT_EQ(value_in("V\\u00e9\n."), Value("\xc3\xa9"s));
  EXPECT_EQ(value_in("\x80\x02\x88."), Value(true));
  EXPECT_EQ(value_in("\x80\x02K\xff."), Value(std::int64_t{255}));
  EXPECT_EQ(value_in("\x80\x02M\x01\x02."), Value(std::int64_t{513}));
  EXPECT_EQ(value_in("J\xfe\xff\xff\xff."), Value(std::int64_t{-2}));
  EXPECT_EQ(value_in("G\x3f\xf8\0\0\0\0\0\0."s), Value(1.5));
  EXPECT_EQ(value_in("\x80\x04\x8c\x02hi."), Value("hi"s));
  EXPECT_EQ(value_in("\x80\x03"
                     "C\x02\x01\xff."),
            Value(ByteString{{std::byte{1}, std::byte{255}}}));
}

TEST(Pickle, ReadsIntegersOfAnySize) {
  EXPECT_EQ(value_in("\x80\x02\x8a\0."s), Value(std::int64_t{0}));
  EXPECT_EQ(value_in("\x80\x02\x8a\x01\x80."), Value(std::int64_t{-128}));
  EXPECT_EQ(value_in("\x80\x02\x8a\x08\0\0\0\0\0\0\0\x80."s), Value(INT64_MIN));
  EXPECT_EQ(value_text(value_in("\x80\x02\x8a\x09\0\0\0\0\0\0\0\x80\0."s)), "9223372036854775808");
  EXPECT_EQ(value_text(value_in("\x80\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\xff."s)),
            "-9223372036854775809");
  EXPECT_EQ(value_text(value_in("L-9223372036854775809L\n.")), "-9223372036854775809");
}

TEST(Pickle, KeepsCallsClassesAndStatesAsNames) {
  const auto tree = read(
      "\x80\x02"
      "c__main__\nThing\n)\x81}X\1\0\0\0aK\1sb."s);
  ASSERT_TRUE(tree) << tree.error().text();
  const PickleNode& root = tree->root();
  EXPECT_EQ(root.kind, PickleKind::kObject);
  EXPECT_EQ(callee(root), "__main__.Thing");
  ASSERT_EQ(root.states().size(), 1U);
  ASSERT_EQ(root.states()[0]->pairs().size(), 1U);
  EXPECT_EQ(*root.states()[0]->pairs()[0].first->string(), "a");
}

TEST(Pickle, SaysWhereItEnds) {
  const auto tree = read_pickle(as_bytes("\x80\x02N.rest"), 100);
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->end(), 104U);
}

TEST(Pickle, SharesAndClosesCycles) {
  const auto tree = read("\x80\x02]q\0h\0a."s);
  ASSERT_TRUE(tree) << tree.error().text();
  ASSERT_EQ(tree->root().items().size(), 1U);
  EXPECT_EQ(tree->root().items()[0], &tree->root());
}

TEST(Pickle, NumbersMemoizeBySizeOfMemo) {
  const auto tree = read(
      "\x80\x04\x8c\x01"
      "a\x94\x8c\x01"
      "b\x94h\0\x87."s);
  ASSERT_TRUE(tree) << tree.error().text();
  EXPECT_EQ(*tree->root().items()[2]->string(), "a");
}

TEST(Pickle, RefusesWhatDoesNotFitTheMachine) {
  expect_error("\x80\x02\xfe.", CauseKind::kBitrot, 2);       // unknown opcode
  expect_error("\x80\x09N.", CauseKind::kBitrot, 0);          // unknown protocol
  expect_error("N\x80\x02.", CauseKind::kBitrot, 1);          // protocol in the middle
  expect_error("\x80\x02h\x05.", CauseKind::kBitrot, 2);      // nothing remembered
  expect_error("\x80\x02R.", CauseKind::kBitrot, 2);          // nothing to call
  expect_error("\x80\x02t.", CauseKind::kBitrot, 2);          // no mark
  expect_error("\x80\x02NN.", CauseKind::kBitrot, 4);         // two results
  expect_error("\x80\x02(.", CauseKind::kBitrot, 3);          // a mark that nothing takes
  expect_error("\x80\x02Q.", CauseKind::kBitrot, 2);          // nothing to name
  expect_error("\x80\x02.", CauseKind::kBitrot, 2);           // none
  expect_error("\x80\x02}(Nu.", CauseKind::kBitrot, 5);       // a key without a value
  expect_error("\x80\x02K\1Na.", CauseKind::kBitrot, 5);      // appends to a number
  expect_error("X\1\0\0\0\xff."s, CauseKind::kBitrot, 0);     // no UTF-8
  expect_error("\x80\x04NN\x93.", CauseKind::kPickleDep, 4);  // a class named by no string
  expect_error("\x80\x02]}b.", CauseKind::kBitrot, 4);        // a list has no state
}

TEST(Pickle, RefusesAClassOfALongName) {
  const std::string longest(kPickleNameMax, 'a');
  const auto named = [](const std::string& module, const std::string& name) {
    return "\x80\x02"
           "c" +
           module + "\n" + name + "\n.";
  };
  EXPECT_TRUE(read(named(longest, longest)));
  expect_error(named(longest + "a", "b"), CauseKind::kBitrot, 2);
  expect_error(named("a", longest + "b"), CauseKind::kBitrot, 2);
}

TEST(Pickle, KeepsANodeSmall) {
  EXPECT_EQ(sizeof(PickleNode), 24U);
}

TEST(Pickle, GrowsListsDictionariesAndStatesByAnyNumber) {
  std::string body = "]";
  for (int i = 0; i < 5; ++i) body += "(NNNe";
  const auto list = read("\x80\x02" + body + ".");
  ASSERT_TRUE(list) << list.error().text();
  EXPECT_EQ(list->root().items().size(), 15U);
  const auto object = read(
      "\x80\x02"
      "cm\nC\n)\x81}b}bNb(K\1K\2K\3K\4uK\5K\6sK\7a.");
  ASSERT_TRUE(object) << object.error().text();
  EXPECT_EQ(object->root().states().size(), 3U);
  EXPECT_TRUE(object->root().states()[2]->is_none());
  ASSERT_EQ(object->root().pairs().size(), 3U);
  EXPECT_EQ(object->root().pairs()[2].second->integer(), 6);
  ASSERT_EQ(object->root().added().size(), 1U);
  EXPECT_EQ(object->root().added()[0]->integer(), 7);
}

TEST(Pickle, TheLastAttributeOfANameCounts) {
  const auto object = read(
      "\x80\x02"
      "cm\nC\n)\x81}(X\1\0\0\0aK\1X\1\0\0\0aK\2X\1\0\0\0bK\3ub"
      "N}X\1\0\0\0cK\4s\x86"
      "b."s);
  ASSERT_TRUE(object) << object.error().text();
  const PickleNode& root = object->root();
  ASSERT_NE(attribute(root, "a"), nullptr);
  EXPECT_EQ(attribute(root, "a")->integer(), 2);
  EXPECT_EQ(attribute(root, "b")->integer(), 3);
  ASSERT_NE(attribute(root, "c"), nullptr) << "of the slots";
  EXPECT_EQ(attribute(root, "c")->integer(), 4);
  EXPECT_EQ(attribute(root, "d"), nullptr);
  EXPECT_EQ(attribute(root, "a", 2), nullptr) << "the third from the end";
  EXPECT_NE(attribute(root, "a", 3), nullptr);
}

TEST(Pickle, RemembersUnderAnyNumber) {
  const auto tree = read("\x80\x02(K\1r\xff\xff\xff\x7fK\2q\1j\xff\xff\xff\x7fh\1t.");
  ASSERT_TRUE(tree) << tree.error().text();
  ASSERT_EQ(tree->root().items().size(), 4U);
  EXPECT_EQ(tree->root().items()[2]->integer(), 1);
  EXPECT_EQ(tree->root().items()[3]->integer(), 2);
}

TEST(Pickle, CallsAnEndBeforeStopACut) {
  expect_error("\x80\x02N", CauseKind::kTrunc, 3);
  expect_error("", CauseKind::kTrunc, 0);
  expect_error("\x80\x04\x95\x10\0\0\0\0\0\0\0N."s, CauseKind::kTrunc, 2);
  const auto tree = read("\x80\x02X\x10\0\0\0abc"s);
  ASSERT_FALSE(tree);
  EXPECT_EQ(tree.error().cause->kind, CauseKind::kTrunc);
}

TEST(Pickle, RefusesAnOperandThatIsNotThereBeforeAllocatingIt) {
  const auto tree = read("\x80\x02\x8b\xff\xff\xff\x7f."s);
  ASSERT_FALSE(tree);
  EXPECT_EQ(tree.error().cause->kind, CauseKind::kTrunc);
}

TEST(PickleGlobals, NamesWhatWouldRun) {
  const auto tree = read(
      "\x80\x02"
      "cposix\nsystem\nX\2\0\0\0id\x85R."s);
  ASSERT_TRUE(tree) << tree.error().text();
  const auto findings = judge_globals(*tree);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].check, "static.pickle");
  EXPECT_EQ(findings[0].status, Status::kFail);
  EXPECT_EQ(findings[0].cause, (Cause{CauseKind::kPickleDep}));
  EXPECT_EQ(findings[0].evidence[0].value, "posix.system");
  EXPECT_EQ(findings[0].evidence[1].value, "2");
}

TEST(PickleGlobals, NamesGlobalsThatTheStackSpells) {
  const auto tree = read(
      "\x80\x04\x8c\x08"
      "builtins\x8c\x04"
      "eval\x93\x8c\x01"
      "1\x85R.");
  ASSERT_TRUE(tree) << tree.error().text();
  const auto findings = judge_globals(*tree);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].subject, "builtins.eval");
}

TEST(PickleGlobals, AllowsAnEnumerationsMemberAndNoLongerChain) {
  const std::string member = "cbuiltins\ngetattr\ncm\nColor\nX\3\0\0\0RED\x86R"s;
  const auto good = read("\x80\x02" + member + ".");
  ASSERT_TRUE(good) << good.error().text();
  for (const Finding& finding : judge_globals(*good)) EXPECT_EQ(finding.status, Status::kWarn);
  const auto chain = read(
      "\x80\x02"
      "cbuiltins\ngetattr\n" +
      member + "X\1\0\0\0x\x86R."s);
  ASSERT_TRUE(chain) << chain.error().text();
  EXPECT_EQ(judge_globals(*chain)[0].subject, "builtins.getattr");
  EXPECT_EQ(judge_globals(*chain)[0].status, Status::kFail);
}

TEST(PickleGlobals, SeesTheWaysAroundAName) {
  const auto subject = [](const std::string& body) {
    const auto tree = read("\x80\x04" + body + ".");
    EXPECT_TRUE(tree) << tree.error().text();
    for (const Finding& finding : tree ? judge_globals(*tree) : std::vector<Finding>()) {
      if (finding.status == Status::kFail) return finding.subject;
    }
    return "none"s;
  };
  EXPECT_EQ(subject("ctorch\nos.system\n"), "torch.os.system");
  EXPECT_EQ(subject("cbuiltins\ngetattr\nctorch\nos\nX\6\0\0\0system\x86R"s), "torch.os");
  EXPECT_EQ(subject("cbuiltins\ngetattr\nctorch\nserialization\nX\4\0\0\0load\x86R"s),
            "torch.serialization.load");
  EXPECT_EQ(subject("ccollections\nOrderedDict.__init__.__globals__\n"),
            "collections.OrderedDict.__init__.__globals__");
  EXPECT_EQ(subject("ctypes\nSimpleNamespace\n"), "none");
  EXPECT_EQ(subject("cmine.os\nThing\n"), "none");
  const std::string object = "cmine\nThing\n)R";
  EXPECT_EQ(subject("cbuiltins\ngetattr\n" + object + "X\4\0\0\0step\x86R"s), "none");  // a method
  EXPECT_EQ(subject("cbuiltins\ngetattr\n" + object + "X\x9\0\0\0__class__\x86R"s),
            "builtins.getattr");
  EXPECT_EQ(subject("(imine\nThing\n"), "none");
  EXPECT_EQ(subject("(X\2\0\0\0idios\nsystem\n"s), "os.system");   // INST
  EXPECT_EQ(subject("(cos\nsystem\nX\2\0\0\0ido"s), "os.system");  // OBJ
}

TEST(PickleGlobals, RefusesANameThatThePickleComputes) {
  // getattr(str, "join")("", ["sys", "tem"]) as the name of a class.
  expect_error("\x80\x04\x8c\2osN)R\x93.", CauseKind::kPickleDep, 9);
}

TEST(PickleGlobals, LeavesWhatPyTorchWritesAlone) {
  const auto tree = read(pickled(testing::pickle_tensor()));
  ASSERT_TRUE(tree) << tree.error().text();
  EXPECT_TRUE(judge_globals(*tree).empty());
}

}  // namespace
}  // namespace ckptverify
