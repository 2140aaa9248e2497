"""The files that `run` leaves: its report in four renderings, and copies where a CI system looks for them.

run_files_test.py TOOL
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

TOOL = pathlib.Path(sys.argv[1]).resolve()
del sys.argv[1:]
PLAN = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "odd_trainer" / "plan.toml"


class RunFiles(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def run_gate(self, *arguments, **options):
        command = [TOOL, "run", PLAN, "--set", "behave=crash-in-training", *arguments]
        return subprocess.run([*map(str, command)], cwd=self.folder, capture_output=True, text=True, timeout=60,
                              **options)

    def test_four_renderings_lie_in_the_output_directory(self):
        done = self.run_gate("--out", "out")
        self.assertEqual(done.returncode, 2, done.stderr)
        report = json.loads((self.folder / "out" / "report.json").read_text())
        self.assertEqual(report["verdict"], "inconclusive")
        cases = ElementTree.parse(self.folder / "out" / "junit.xml").getroot().iter("testcase")
        self.assertEqual([case.get("name") for case in cases], [check["id"] for check in report["checks"]])
        self.assertTrue((self.folder / "out" / "report.md").read_text().startswith("## INCONCLUSIVE: "))
        self.assertTrue((self.folder / "out" / "report.html").read_text().startswith("<!doctype html>"))

    def test_copies_go_where_they_are_asked_for(self):
        (self.folder / "summary.md").write_text("of the step before")
        done = self.run_gate("--out", "out", "--junit", "checks.xml", "--markdown", "summary.md")
        self.assertEqual(done.returncode, 2, done.stderr)
        for copy, original in (("checks.xml", "junit.xml"), ("summary.md", "report.md")):
            self.assertEqual((self.folder / copy).read_text(), (self.folder / "out" / original).read_text())
        self.assertEqual(sorted(os.listdir(self.folder)), ["checks.xml", "out", "summary.md"])

    def test_a_link_and_a_pipe_stay_what_they_are(self):
        (self.folder / "real.md").write_text("kept\n")
        (self.folder / "link.md").symlink_to("real.md")
        os.mkfifo(self.folder / "pipe")
        reader = subprocess.Popen(["cat", self.folder / "pipe"], stdout=subprocess.PIPE, text=True)
        done = self.run_gate("--out", "out", "--junit", "pipe", "--markdown", "link.md")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(reader.communicate(timeout=30)[0], (self.folder / "out" / "junit.xml").read_text())
        self.assertTrue((self.folder / "link.md").is_symlink())
        self.assertEqual((self.folder / "real.md").read_text(),
                         "kept\n" + (self.folder / "out" / "report.md").read_text())

    def test_a_place_that_cannot_be_is_told_before_anything_is_trained(self):
        for option in ("--junit", "--markdown"):
            for place, said in (("no-such-folder/file", "no such folder"), (".", "found a folder")):
                done = self.run_gate("--out", "out", option, place)
                self.assertEqual((done.returncode, done.stdout), (64, ""))
                self.assertIn(f"ckptverify: {option}: {said}", done.stderr)
                self.assertFalse((self.folder / "out").exists())


if __name__ == "__main__":
    unittest.main()
