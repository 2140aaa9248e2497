"""What a new user does first: doctor, init, and a gate that is watched. first_steps_test.py TOOL FIXTURES"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

FIXTURES, TOOL = pathlib.Path(sys.argv.pop()).resolve(), pathlib.Path(sys.argv.pop()).resolve()
ODD = FIXTURES / "odd_trainer" / "plan.toml"


def run(*arguments, cwd=None):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=120, cwd=cwd)


class FirstSteps(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ckptverify-steps-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def checks(self, *arguments):
        return {check["id"]: check for check in json.loads(run("doctor", *arguments, "--json").stdout)["checks"]}

    def test_doctor_claims_nothing_of_a_directory_that_is_not_there(self):
        absent = self.folder / "not" / "there"
        checks = self.checks("--dir", absent)
        self.assertEqual(checks["machine.directory"]["status"], "warn")
        self.assertIn(f"{absent} is not there", checks["machine.directory"]["message"])
        for name in ("machine.space", "machine.reflink"):
            self.assertNotIn(str(absent), checks[name]["message"])
            self.assertIn(str(self.folder), checks[name]["message"])
        self.assertFalse(absent.exists())
        (self.folder / "file").write_text("")
        self.assertEqual(self.checks("--dir", self.folder / "file")["machine.directory"]["status"], "fail")
        self.assertEqual(run("doctor", "--dir", self.folder / "file").returncode, 1)

    def test_doctor_is_a_table_below_its_verdict(self):
        lines = run("doctor", "--dir", self.folder).stdout.splitlines()
        self.assertRegex(lines[0], r"^PASS  The gate can be run here\.$")
        starts = {re.match(r"  \S+ +machine\.\S+ +", line).end() for line in lines[1:] if "machine." in line}
        self.assertEqual(len(starts), 1, lines)
        self.assertLessEqual(max(map(len, lines)), 100)

    def test_doctor_says_of_a_plan_that_events_are_needed_for_a_pass(self):
        plan = self.folder / "plan.toml"
        self.assertEqual(run("init", plan, "--train", "true", "{run_dir}").returncode, 0)
        events = self.checks(plan, "--dir", self.folder)["plan.events"]
        self.assertEqual(events["status"], "not-observed")
        self.assertIn("without them no pass is possible (docs/trainer-contract.md", events["message"])

    def test_help_lists_exit_codes_where_a_verdict_is_given(self):
        for command in ("run", "check", "doctor"):
            self.assertIn("Exit codes: 0 ", run(command, "--help").stdout)

    def test_init_writes_nothing_that_is_no_plan(self):
        for words in (["--save", "5", "--final", "3"], ["--save", "0"], ["--horizon", "10"],
                      ["--train", "true"], ["--checkpoint", "/elsewhere/{step}"], ["--checkpoint", "{run}/x"]):
            plan = self.folder / "plan.toml"
            done = run("init", plan, *words)
            self.assertEqual((done.returncode, done.stdout), (64, ""), words)
            self.assertIn("; nothing was written\n", done.stderr)
            self.assertFalse(plan.exists(), words)

    def test_init_takes_a_command_in_quotes(self):
        plan = self.folder / "plan.toml"
        done = run("init", plan, "--train", "true 'train it.py' --run-dir {run_dir}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('train = ["true", "train it.py", "--run-dir", "{run_dir}"]', plan.read_text())
        done = run("init", self.folder / "b.toml", "--train", "python3", "train.py", "--run-dir", "{run_dir}")
        self.assertEqual(done.returncode, 64)
        self.assertIn("put a command in quotes: --train 'python3 train.py --run-dir {run_dir}'", done.stderr)

    def test_a_command_in_one_word_is_not_started(self):
        plan = self.folder / "plan.toml"
        self.assertEqual(run("init", plan, "--train", "true", "{run_dir}").returncode, 0)
        plan.write_text(plan.read_text().replace('["true", "{run_dir}"]', '["true {run_dir}"]'))
        for command in ("doctor", "run"):
            done = run(command, plan, *(["--out", self.folder / "out"] if command == "run" else []))
            self.assertEqual(done.returncode, {"doctor": 1, "run": 64}[command], done.stdout + done.stderr)
            self.assertIn("a command is a list of its words", " ".join((done.stdout + done.stderr).split()))

    def test_repeat_works_from_anywhere(self):
        shutil.copy(ODD, self.folder / "plan.toml")
        out = self.folder / "out"
        gate = run("run", "plan.toml", "--set", "behave=crash-in-training", "--out", out, cwd=self.folder)
        self.assertEqual(gate.returncode, 2, gate.stderr)
        repeat = json.loads((out / "report.json").read_text())["repeat_command"]
        self.assertIn(f" run {self.folder.resolve()}/plan.toml ", repeat)
        shutil.copy(FIXTURES / "files" / "safetensors" / "good" / "dtypes.safetensors", self.folder / "a.safetensors")
        report = json.loads(run("check", "a.safetensors", "--json", cwd=self.folder).stdout)
        self.assertIn(f" check {self.folder.resolve()}/a.safetensors", report["repeat_command"])

    def test_progress_says_how_far_each_phase_came_and_how_long_it_took(self):
        gate = run("run", ODD, "--out", self.folder / "out")
        self.assertEqual(gate.returncode, 0, gate.stderr)
        lines = gate.stderr.splitlines()
        self.assertEqual(lines[0], "reference")
        self.assertRegex(lines[1], r"^reference: step 10 of 10, \d+\.\d+ s$")
        self.assertEqual(lines[2], "interrupted")
        self.assertRegex(lines[3], r"^interrupted: step 5 of 10, \d+\.\d+ s$")
        self.assertRegex(lines[5], r"^evaluation of interrupted at 5: \d+\.\d+ s$")


if __name__ == "__main__":
    unittest.main()
