"""What befalls a gate from outside: befallen_test.py TOOL PLAN_OF_THE_ODD_TRAINER

Whatever it is, the gate ends with a code that is true, and leaves no process behind.
"""

import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

TOOL, PLAN = sys.argv[1:3]
PHASES = ("reference", "interrupted", "evaluation of interrupted at 5", "restored")
MARKER = "GATE_TEST_MARKER"  # the tool takes CKPTVERIFY_* out of trainers' environments


def marked(marker):
    """Processes whose environment carries the marker."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            environment = pathlib.Path("/proc", pid, "environ").read_bytes()
            if marker.encode() in environment:
                found[int(pid)] = pathlib.Path("/proc", pid, "cmdline").read_bytes().split(b"\0")
        except OSError:
            pass
    return found


class Befallen(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ckptverify-befallen-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.out = self.folder / "out"
        self.marker = self.folder.name

    def start(self, *settings, stdout=subprocess.PIPE, out=None):
        command = [TOOL, "run", PLAN, "--out", str(out or self.out), "--json"]
        for setting in settings:
            command += ["--set", setting]
        return subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, text=True,
                                env={**os.environ, MARKER: self.marker})

    def at(self, gate, phase):
        """Reads on until that phase begins."""
        for line in gate.stderr:
            if line.strip() == phase:
                return
        self.fail(f"the gate never came to {phase}")

    def ended(self, gate):
        output, errors = gate.communicate(timeout=60)
        self.assertEqual(marked(self.marker), {})
        return output, errors

    def test_a_signal_in_any_phase_ends_it_inconclusive(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for phase in PHASES:
                with self.subTest(phase=phase, signal=number):
                    gate = self.start("step_us=20000")
                    self.at(gate, phase)
                    gate.send_signal(number)
                    report = json.loads(self.ended(gate)[0])
                    self.assertEqual(gate.returncode, 2)
                    self.assertEqual(report["verdict"], "inconclusive")
                    self.assertEqual(report["causes"], [])
                    broken = [c["message"] for c in report["checks"] if c["id"] == "process.gate"]
                    self.assertEqual(len(broken), 1)
                    self.assertIn(number.name, broken[0])
                    shutil.rmtree(self.out)

    def test_a_guardian_that_is_killed_is_not_held_against_the_trainer(self):
        gate = self.start("step_us=200000")
        self.at(gate, "restored")
        guardian = None
        while guardian is None:  # it is started right after the line
            for pid, words in marked(self.marker).items():
                if words[1:2] == [b"guardian"]:
                    guardian = pid
        os.kill(guardian, signal.SIGKILL)
        report = json.loads(self.ended(gate)[0])
        self.assertEqual((gate.returncode, report["causes"]), (2, []))

    def test_a_report_that_cannot_be_written_leaves_the_verdict_and_ends_with_2(self):
        gate = self.start("step_us=20000")
        self.at(gate, "restored")
        (self.out / "report.json.tmp").mkdir()
        output, errors = self.ended(gate)
        self.assertEqual(json.loads(output)["verdict"], "pass")
        self.assertIn("report.json: the report cannot be written: Is a directory", errors)
        self.assertEqual(gate.returncode, 2)
        self.assertEqual([f for f in os.listdir(self.out) if f.startswith("report")], [])

    def test_a_copy_that_has_no_room_is_inconclusive_with_its_reason(self):
        gate = self.start("step_us=200000")
        self.at(gate, "reference")
        # The trainer, which was or is being started, has a limit of its own.
        while not any(b"odd_trainer" in words[0] for words in marked(self.marker).values()):
            pass
        resource.prlimit(gate.pid, resource.RLIMIT_FSIZE, (16, 16))
        output, errors = self.ended(gate)
        report = json.loads(output)
        self.assertEqual((gate.returncode, report["causes"]), (2, []))
        broken = [c["message"] for c in report["checks"] if c["id"] == "process.gate"]
        self.assertIn("File too large", broken[0])

    def test_output_that_cannot_be_written_is_no_pass(self):
        with open("/dev/full", "w") as full:
            gate = self.start(stdout=full)
            errors = self.ended(gate)[1]
        self.assertIn("standard output cannot be written to", errors)
        self.assertEqual(gate.returncode, 2)
        self.assertEqual(json.loads((self.out / "report.json").read_text())["verdict"], "pass")

    def test_progress_that_nobody_reads_ends_no_gate(self):
        gate = self.start()
        self.at(gate, "interrupted")
        gate.stderr.close()
        gate.stderr = None
        report = json.loads(gate.communicate(timeout=60)[0])
        self.assertEqual((gate.returncode, report["verdict"]), (0, "pass"))
        self.assertEqual(marked(self.marker), {})

    def test_a_report_that_nobody_reads_is_written_all_the_same(self):
        reading, writing = os.pipe()
        os.close(reading)
        gate = self.start(stdout=writing)
        os.close(writing)
        self.ended(gate)
        self.assertEqual(gate.returncode, 2)
        self.assertEqual(json.loads((self.out / "report.json").read_text())["verdict"], "pass")

    def test_a_hang_up_that_is_ignored_stays_ignored(self):
        gate = subprocess.Popen(["nohup", TOOL, "run", PLAN, "--out", self.out, "--set", "step_us=20000"],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True,
                                env={**os.environ, MARKER: self.marker})
        self.at(gate, "interrupted")
        gate.send_signal(signal.SIGHUP)
        self.ended(gate)
        self.assertEqual(gate.returncode, 0)

    def test_a_thread_that_cannot_be_started_is_no_bug_of_ours(self):
        # A stack that does not fit into the address space: the first thread is refused.
        command = f'ulimit -s 8000000 && ulimit -v 4000000 && exec "{TOOL}" run "{PLAN}" --out "{self.out}"'
        gate = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60,
                              env={**os.environ, MARKER: self.marker})
        if "ulimit:" in gate.stderr or "Sanitizer" in gate.stderr:
            self.skipTest("these limits cannot be set here")
        self.assertEqual(gate.returncode, 66, gate.stderr)
        self.assertIn("a thread cannot be started", gate.stderr)
        self.assertEqual([path for path in self.out.rglob("*") if path.is_fifo()], [])

    def test_closed_descriptors_do_not_reach_its_files(self):
        command = f'exec "{TOOL}" run "{PLAN}" --out "{self.out}" <&- >&- 2>&-'
        self.assertEqual(subprocess.run(["sh", "-c", command], timeout=60).returncode, 0)
        self.assertEqual(json.loads((self.out / "report.json").read_text())["verdict"], "pass")
        log = (self.out / "logs" / "reference.log").read_text()
        self.assertTrue(log.startswith("step 1 loss "), log[:80])

    def test_of_two_gates_in_one_directory_one_is_refused(self):
        gates = [self.start(), self.start()]
        for gate in gates:
            self.ended_alone(gate)
        self.assertEqual(sorted(gate.returncode for gate in gates), [0, 64])

    def ended_alone(self, gate):
        gate.communicate(timeout=60)

    def test_an_output_directory_that_cannot_be_is_wrong_usage(self):
        (self.folder / "file").write_text("mine")
        (self.folder / "loop").symlink_to("loop")
        for name in ("file", "file/below", "loop", "x" * 300):
            gate = self.start(out=self.folder / name)
            errors = self.ended(gate)[1]
            self.assertEqual(gate.returncode, 64, name)
            self.assertIn("expected a directory that is new or empty", errors)
        self.assertEqual((self.folder / "file").read_text(), "mine")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
