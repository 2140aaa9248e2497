"""Folders of several checkpoints on the command line: collection_test.py PATH_OF_TOOL"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOL = sys.argv.pop(1)
FILES = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "files" / "collection"
RUN = FILES / "good" / "hf_run"


def run(*arguments):
    return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=60)


class Collection(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ckptverify-collection-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def test_inspect_lists_the_checkpoints_and_the_pick(self):
        done = run("inspect", RUN, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(done.stdout)["collection"]
        self.assertEqual([(item["name"], item["step"], item["format"], item["state"]) for item in told["items"]],
                         [("checkpoint-5", 5, "hf-trainer", "whole"), ("checkpoint-10", 10, "hf-trainer", "whole")])
        self.assertEqual((told["pick"], told["newest_whole"]), ("checkpoint-10", "checkpoint-10"))

    def test_inspect_marks_the_pick_for_people(self):
        done = run("inspect", RUN)
        self.assertEqual(done.returncode, 0, done.stderr)
        marked = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("> checkpoint")]
        self.assertEqual(marked, ["checkpoint-10"])

    def test_check_runs_every_check_on_the_pick(self):
        done = run("check", RUN, "--json")
        self.assertEqual(done.returncode, 0, done.stdout)
        checks = json.loads(done.stdout)["checks"]
        self.assertEqual(checks[0]["id"], "static.collection")
        self.assertIn("static.checksums", [check["id"] for check in checks])

    def test_check_finds_what_the_pick_lost(self):
        copy = self.folder / "run"
        shutil.copytree(RUN, copy)
        (copy / "checkpoint-10" / "trainer_state.json").unlink()
        done = run("check", copy, "--json")
        self.assertEqual(done.returncode, 1)
        report = json.loads(done.stdout)
        self.assertEqual(report["causes"][0]["id"], "uncommitted")
        failed = [check["id"] for check in report["checks"] if check["status"] == "fail"]
        self.assertEqual(failed, ["static.collection", "static.container"])

    def test_what_the_pick_lacks_is_the_cause(self):
        shutil.copytree(RUN, self.folder / "run")
        (self.folder / "run" / "checkpoint-10" / "optimizer.pt").unlink()
        done = run("check", self.folder / "run", "--json")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual([cause["id"] for cause in json.loads(done.stdout)["causes"]], ["opt-lost"])

    def test_other_commands_ask_for_one_of_them(self):
        done = run("hash", RUN)
        self.assertEqual(done.returncode, 64)
        self.assertIn("name one of them; found whole: checkpoint-5, checkpoint-10; not whole: none", done.stderr)

    def test_a_link_to_an_older_one_is_followed(self):
        copy = self.folder / "run"
        shutil.copytree(RUN, copy)
        (copy / "latest").symlink_to("checkpoint-5")
        told = json.loads(run("inspect", copy, "--json").stdout)["collection"]
        self.assertEqual((told["pick"], told["newest_whole"]), ("checkpoint-5", "checkpoint-10"))
        self.assertEqual(told["pointers"], [{"name": "latest", "target": "checkpoint-5", "item": "checkpoint-5"}])


if __name__ == "__main__":
    unittest.main()
