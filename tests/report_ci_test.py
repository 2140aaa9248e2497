"""Reads the JUnit XML and the Markdown that the unit tests rendered as a CI system would.

report_ci_test.py FOLDER
"""

import json
import pathlib
import re
import sys
import unittest
import xml.etree.ElementTree as ElementTree

FOLDER = pathlib.Path(sys.argv[1])
SAMPLES = pathlib.Path(__file__).resolve().parent / "unit" / "src" / "report_samples"
NAMES = ("pass", "fail", "inconclusive", "hostile")
del sys.argv[1:]

CHILD_OF = {"fail": "failure", "inconclusive": "error", "not-observed": "skipped", "not-applicable": "skipped",
            "skipped": "skipped", "waived": "skipped", "pass": "system-out", "warn": "system-out"}


class Junit(unittest.TestCase):
    def test_counts_are_those_of_the_cases(self):
        for name in NAMES:
            root = ElementTree.parse(FOLDER / f"{name}.xml").getroot()
            self.assertEqual((root.tag, [child.tag for child in root]), ("testsuites", ["testsuite"]))
            for suite in (root, root[0]):
                cases = list(suite.iter("testcase"))
                self.assertEqual(int(suite.get("tests")), len(cases))
                for counted, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
                    self.assertEqual(int(suite.get(counted)), len(list(suite.iter(tag))), (name, counted))
                self.assertGreaterEqual(float(suite.get("time")), 0)

    def test_every_check_is_one_case_of_its_own_name(self):
        for name in ("pass", "fail", "inconclusive"):
            checks = json.loads((SAMPLES / f"{name}.json").read_text())["checks"]
            cases = list(ElementTree.parse(FOLDER / f"{name}.xml").getroot().iter("testcase"))
            self.assertEqual(len(cases), len(checks))
            self.assertEqual(len({case.get("name") for case in cases}), len(checks))
            for check, case in zip(checks, cases):
                self.assertTrue(case.get("name").startswith(check["id"]))
                self.assertEqual(case.get("classname"), "ckptverify.run." + check["id"].split(".")[0])
                self.assertEqual([child.tag for child in case], [CHILD_OF[check["status"]]])
                self.assertIn(check["message"], (case[0].get("message") or "") + (case[0].text or ""))
                if check["status"] == "fail":
                    self.assertEqual(case[0].get("type"), check["cause"])
                    for row in check["evidence"]:
                        self.assertIn(row["value"], case[0].text)

    def test_every_status_of_a_hostile_report_has_its_outcome(self):
        cases = list(ElementTree.parse(FOLDER / "hostile.xml").getroot().iter("testcase"))
        self.assertEqual([case[0].tag for case in cases],
                         ["system-out", "failure", "system-out", "error"] + ["skipped"] * 4)
        self.assertEqual(len({case.get("name") for case in cases}), 8)
        self.assertIn("<script>*_e_*</script> ]]> & \"q\"", cases[1][0].get("message"))
        self.assertIn("\n# f", cases[1][0].get("message"))


class Markdown(unittest.TestCase):
    def test_a_table_has_three_cells_in_every_row(self):
        for name in NAMES:
            text = (FOLDER / f"{name}.md").read_text()
            rows = [line for line in text.splitlines() if line.startswith("|")]
            self.assertTrue(rows or name == "pass", name)
            for row in rows:
                self.assertEqual(len(re.findall(r"(?<!\\)\|", row)), 4, row)

    def test_what_is_folded_is_closed_and_stays_markdown(self):
        for name in NAMES:
            lines = (FOLDER / f"{name}.md").read_text().splitlines()
            opened = [i for i, line in enumerate(lines) if line.startswith("<details>")]
            closed = [i for i, line in enumerate(lines) if line == "</details>"]
            self.assertEqual(len(opened), len(closed))
            for begin, end in zip(opened, closed):
                self.assertRegex(lines[begin], r"^<details><summary>\d+ (proven|not proven)</summary>$")
                self.assertEqual((lines[begin + 1], lines[end - 1], lines[end + 1]), ("", "", ""))
                self.assertTrue(all(line.startswith("- ") for line in lines[begin + 2:end - 1]))

    def test_nothing_hostile_is_markup(self):
        text = (FOLDER / "hostile.md").read_text()
        own = r"<!-- -->|<details><summary>\d+ [a-z ]+</summary>|</details>"
        code = r"(?<![\\`])(`+)(?!`).*?(?<!`)\1(?!`)"
        outside = re.sub(code, "", re.sub(own, "", text))
        self.assertEqual(re.findall(r"(?<!\\)[<>]", outside), [])
        self.assertNotIn("@name", re.sub(code, "", text))
        self.assertEqual(len(re.findall(r"(?m)^#+ ", text)), 1)

    def test_every_failed_check_is_named(self):
        for name in ("fail", "inconclusive"):
            text = (FOLDER / f"{name}.md").read_text()
            for check in json.loads((SAMPLES / f"{name}.json").read_text())["checks"]:
                row = f"| {check['status']} | `{check['id']}` |"
                self.assertEqual(row in text, check["status"] in ("fail", "inconclusive", "warn", "waived"), row)


if __name__ == "__main__":
    unittest.main()
