"""What a new user's first gates meet, played on variants of fixtures/trainer/contract_example.py: flat names,
a wrong path, a wrong step, no events, a crash. What is right never gets a cause, and what is wrong is told.

first_gates_test.py TOOL
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

TOOL = pathlib.Path(sys.argv.pop()).resolve()
TRAINER = pathlib.Path(__file__).resolve().parents[3] / "fixtures" / "trainer"
FLAT = [('f"{component}.{name}"', "name"), ('"model.weight"', '"weight"'), ('"model.bias"', '"bias"'),
        ('"optimizer.momentum"', '"momentum"'), ('"rng.python"', '"python"')]
SILENT = [("main()\n", 'os.environ.pop("CKPTVERIFY_EVENTS", None)\nmain()\n'),
          ("    while training.step < 12:\n", "    while training.step < 400:\n        time.sleep(0.002)\n"),
          ("import sys\n", "import sys\nimport time\n")]
BEGIN_ANEW = [("    if arguments.checkpoint:\n", "    if False:\n")]
CRASH = [("        training.load(", "        raise KeyError('optimizer')\n        training.load(")]


def replaced(text, pairs):
    for old, new in pairs:
        at = text.rfind(old)
        assert at >= 0, old
        text = text.replace(old, new) if old != "main()\n" else text[:at] + new + text[at + len(old):]
    return text


class FirstGates(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ckptverify-first-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def gate(self, trainer=(), plan=(), settings=()):
        """The report of a gate on the example with those replacements, and what was printed."""
        shutil.copy(TRAINER / "probe.py", self.folder)
        example = replaced((TRAINER / "contract_example.py").read_text(), trainer)
        (self.folder / "contract_example.py").write_text(example)
        text = (TRAINER / "contract_example_python.toml").read_text()
        (self.folder / "plan.toml").write_text(replaced(text, plan))
        out = self.folder / "out"
        command = [TOOL, "run", self.folder / "plan.toml", "--out", out]
        for setting in settings:
            command += ["--set", setting]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        report = json.loads((out / "report.json").read_text())
        self.assertEqual(done.returncode, {"pass": 0, "fail": 1, "inconclusive": 2}[report["verdict"]])
        shutil.rmtree(out)
        return report, done.stdout

    def check(self, report, name):
        return next(check for check in report["checks"] if check["id"] == name)

    def causes(self, report):
        return [cause["id"] for cause in report["causes"]]

    def test_flat_names_get_no_cause_and_the_plan_can_say_what_they_are(self):
        no_requirement = ('components = ["model", "optimizer", "step", "rng"]', "components = []")
        for plan in ([], [no_requirement]):
            report, _ = self.gate(FLAT, plan)
            self.assertEqual((report["verdict"], report["causes"]), ("inconclusive", []))
            self.assertIn("[checkpoints] components = ['^momentum$=optimizer']",
                          self.check(report, "identity.optimizer")["message"])
        rules = ("[steps]", "components = ['^momentum$=optimizer', '^python$=rng', '^step$=step']\n[steps]")
        report, _ = self.gate(FLAT, [rules])
        self.assertEqual((report["verdict"], report["causes"]), ("pass", []))
        report, _ = self.gate(FLAT, [rules], ["forget=momentum"])
        self.assertEqual(self.causes(report), ["opt-lost"])

    def test_a_forgotten_generator_is_the_one_cause(self):
        report, _ = self.gate(settings=["forget=rng"])
        self.assertEqual(self.causes(report), ["rng-lost"])

    def test_a_wrong_path_is_named_with_what_was_there(self):
        report, printed = self.gate(SILENT + [("< 400", "< 12")], [("{run_dir}/step-", "{run_dir}/checkpoints/step-")])
        message = self.check(report, "process.reference")["message"]
        self.assertIn("/out/run/reference/checkpoints/step-5.safetensors", message)
        self.assertIn("holds step-10.safetensors, step-5.safetensors", message)
        self.assertIn("checkpoints.path", printed)

    def test_a_wrong_step_is_told_at_once(self):
        began = time.monotonic()
        report, _ = self.gate(plan=[("save = 5", "save = 4")])
        self.assertLess(time.monotonic() - began, 60)  # and not after a deadline of 300 s
        self.assertIn("saves were told at step 5 and none at step 4",
                      self.check(report, "process.reference")["message"])

    def test_without_events_nothing_unseen_is_claimed(self):
        report, printed = self.gate(SILENT)
        self.assertEqual((report["verdict"], report["causes"]), ("inconclusive", []))
        restore = self.check(report, "process.restore")
        self.assertEqual(restore["status"], "not-observed")
        self.assertIn("docs/trainer-contract.md", printed.split("Checks")[0])
        self.assertLess(printed.count("was not seen"), 8)
        report, _ = self.gate(SILENT + BEGIN_ANEW)
        restore = self.check(report, "process.restore")
        self.assertEqual((restore["status"], restore["cause"]), ("fail", "wrong-start"))
        self.assertIn("never opened a file of the checkpoint that it was given", restore["message"])

    def test_a_crash_at_the_restore_says_so_where_the_cause_stands(self):
        report, printed = self.gate(CRASH)
        self.assertEqual(report["verdict"], "fail")
        head = printed[:printed.index("\n      Remedy")]
        self.assertIn("The resumed process refuses the checkpoint or fails on it: exit 1.", head)
        self.assertNotIn("somewhere", printed)
        self.assertIn("KeyError: 'optimizer'", printed)


if __name__ == "__main__":
    unittest.main()
