"""The reference trainer by itself: equal runs are equal bit for bit, a resumed run is the straight one,
a damaged checkpoint is refused, and each planted fault shows exactly where it should and nowhere else.

trainer_test.py TRAINER
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TRAINER = None
SCRATCH = None
COUNT = 0


class Run:
    """One finished process of the trainer: exit status, events, checkpoints."""

    def __init__(self, arguments, run_dir=None, environment=None):
        global COUNT
        COUNT += 1
        self.run_dir = Path(run_dir or SCRATCH / f"run-{COUNT}")
        self.events_file = SCRATCH / f"events-{COUNT}.jsonl"
        command = [TRAINER, "train", "--run-dir", str(self.run_dir), "--device", "cpu", *arguments]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120,
                                env={**os.environ, "CKPTVERIFY_EVENTS": str(self.events_file),
                                     **(environment or {})})
        self.status, self.errors = result.returncode, result.stderr
        self.events = [json.loads(line) for line in self.events_file.read_text().splitlines()]

    def of_type(self, kind):
        return [event for event in self.events if event["type"] == kind]

    def steps(self):
        """Step -> what was seen of it, without what may differ from process to process."""
        volatile = {"pid", "seq", "t_mono_ns", "data_wait_s"}
        return {event["step"]: {key: value for key, value in event.items() if key not in volatile}
                for event in self.of_type("step")}

    def state(self, at):
        event = [event for event in self.of_type("state") if event["at"] == at][0]
        if "side" in event:
            return json.loads((self.events_file.parent / event["side"]).read_text())
        return event["components"]

    def checkpoint(self, step):
        return self.run_dir / "checkpoints" / f"step-{step}"

    def index(self, step):
        return json.loads((self.checkpoint(step) / "index.json").read_text())


def variant(form, shards):
    return ["--format", form, "--shards", str(shards)]


class CleanRuns(unittest.TestCase):
    def test_equal_runs_are_equal_bit_for_bit(self):
        first, second = Run([]), Run([])
        self.assertEqual(first.status, 0)
        self.assertEqual(list(first.steps()), list(range(1, 13)))
        self.assertEqual(first.steps(), second.steps())
        for step in (5, 10):
            self.assertEqual(first.index(step), second.index(step))

    def test_resumed_run_is_the_straight_run(self):
        for form in ("hdf5", "safetensors", "torch"):
            for shards in (1, 4):
                with self.subTest(format=form, shards=shards):
                    straight = Run(variant(form, shards))
                    moved = SCRATCH / f"moved-{form}-{shards}"
                    shutil.copytree(straight.checkpoint(5), moved)
                    resumed = Run([*variant(form, shards), "--resume", str(moved)])
                    self.assertEqual(resumed.status, 0, resumed.errors)
                    self.assertEqual([event["step"] for event in resumed.of_type("restored")], [5])
                    expected = {step: seen for step, seen in straight.steps().items() if step > 5}
                    self.assertEqual(resumed.steps(), expected)
                    self.assertEqual(straight.index(10), resumed.index(10))
                    self.assertEqual(straight.state("save"), resumed.state("restored"))
                    self.assertEqual(len(straight.index(5)["shards"]), shards)

    def test_a_part_that_is_off_is_absent_live_and_on_disk(self):
        for arguments, component in ((["--ema", "off"], "ema"), (["--scaler", "off"], "scaler")):
            run = Run(arguments)
            self.assertNotIn(component, run.state("save"))
            self.assertNotIn(component, run.index(5)["values"])
        plain = Run(["--optimizer", "sgd", "--momentum", "0"])
        self.assertNotIn("state", plain.index(5)["values"]["optimizer"])
        self.assertFalse([path for path in plain.index(5)["tensors"] if path.startswith("optimizer")])
        self.assertEqual(Run(["--tied", "off"]).index(5)["aliases"], {})

    def test_everything_moves_that_a_gate_needs_to_see_moving(self):
        run = Run([])
        scales = [65536.0] + [step["scale"] for step in run.steps().values()][:10]
        self.assertTrue(any(after > before for before, after in zip(scales, scales[1:])), scales)
        self.assertTrue(any(after < before for before, after in zip(scales, scales[1:])), scales)
        self.assertNotEqual(scales[5], scales[0])
        epochs = [run.index(step)["values"]["data_cursor"]["epoch"] for step in (5, 10)]
        self.assertEqual(epochs, [0, 1])
        self.assertEqual(run.index(5)["aliases"], {"model.head.weight": "model.wte.weight"})
        evaluations = [event["metrics"]["loss"] for event in run.of_type("eval")]
        self.assertLess(evaluations[1], evaluations[0])

    def test_latest_is_the_newest_by_number(self):
        run = Run(["--save-at", "5,9,10"])
        (run.checkpoint(10) / "index.json.xxh3").unlink()  # not complete any more
        self.assertEqual(Run(["--save-at", "12", "--resume", "latest"], run.run_dir)
                         .of_type("restored")[0]["step"], 9)

    def test_retention_keeps_the_newest(self):
        run = Run(["--save-at", "2,4,9,10", "--keep", "2"])
        names = sorted(path.name for path in (run.run_dir / "checkpoints").iterdir())
        self.assertEqual(names, ["latest", "step-10", "step-9"])
        self.assertEqual((run.run_dir / "checkpoints" / "latest").read_text(), "step-10\n")

    def test_finished_run_does_nothing_more(self):
        run = Run(["--save-at", "12"])
        again = Run(["--save-at", "12", "--resume", "latest"], run.run_dir)
        self.assertEqual((again.status, again.steps(), again.of_type("save_end")), (0, {}, []))


class Refusals(unittest.TestCase):
    def test_every_damaged_file_is_refused(self):
        for form in ("hdf5", "safetensors", "torch"):
            whole = Run(variant(form, 4)).checkpoint(5)
            for name in sorted(path.name for path in whole.iterdir())[-4 if form == "hdf5" else -1:]:
                damaged = SCRATCH / "damaged"
                shutil.rmtree(damaged, ignore_errors=True)
                shutil.copytree(whole, damaged)
                content = bytearray((damaged / name).read_bytes())
                content[len(content) // 2] ^= 1
                (damaged / name).write_bytes(content)
                run = Run([*variant(form, 4), "--resume", str(damaged)])
                self.assertEqual((run.status, run.steps()), (3, {}), name)
                self.assertIn("damaged", run.errors)

    def test_missing_shard_and_missing_checkpoint_are_refused(self):
        whole = Run(variant("safetensors", 4)).checkpoint(5)
        (whole / "shard-00002-of-00004.safetensors").unlink()
        run = Run([*variant("safetensors", 4), "--resume", str(whole)])
        self.assertEqual(run.status, 3)
        self.assertIn("shard-00002-of-00004.safetensors: is missing", run.errors)
        self.assertEqual(Run(["--resume", "latest"]).status, 3)

    def test_another_runs_checkpoint_is_refused(self):
        run = Run(["--resume", str(Run([]).checkpoint(5)), "--dropout", "0.2"])
        self.assertEqual(run.status, 3)
        self.assertIn("of another run", run.errors)

    def test_wrong_command_line_is_refused_with_the_choices(self):
        result = subprocess.run([TRAINER, "train", "--run-dir", str(SCRATCH / "no"), "--fault", "x"],
                                capture_output=True, text=True)
        self.assertEqual(result.returncode, 64)
        self.assertIn("sched-lost", result.stderr)
        self.assertFalse((SCRATCH / "no").exists())


class Signals(unittest.TestCase):
    def test_sigterm_saves_at_the_next_step_and_leaves_with_zero(self):
        run_dir, events, gate = SCRATCH / "term", SCRATCH / "term.jsonl", SCRATCH / "term-gate"
        os.mkfifo(gate)
        process = subprocess.Popen(
            [TRAINER, "train", "--run-dir", str(run_dir), "--device", "cpu"],
            stdout=subprocess.DEVNULL,
            env={**os.environ, "CKPTVERIFY_EVENTS": str(events), "CKPTVERIFY_GATE": str(gate),
                 "CKPTVERIFY_HOLD": "step@3"})
        with open(gate, "w"):  # opens when the trainer is held at step 3
            process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), 0)
        self.assertEqual((run_dir / "checkpoints" / "latest").read_text(), "step-3\n")
        self.assertEqual(json.loads(events.read_text().splitlines()[-1])["reason"], "sigterm")


# What a fault changes first, against the clean resumed run: the step that shows it, and the fields.
TRAJECTORY = {"loss", "grad_norm"}
EFFECTS = {
    "sched-lost": (6, {"lr"}),
    "sched-lost-unsaved": (6, {"lr"}),
    "sched-shift": (6, {"lr"}),
    "opt-lost": (7, TRAJECTORY),
    "opt-lost-unsaved": (7, TRAJECTORY),
    "opt-map": (7, TRAJECTORY),
    "opt-meta": (7, TRAJECTORY),
    "scaler": (6, {"scale"}),
    "rng-lost": (6, TRAJECTORY | {"batch", "rng"}),
    "rng-lost-unsaved": (6, TRAJECTORY | {"batch", "rng"}),
    "rng-lost-torch": (6, TRAJECTORY | {"rng"}),
    "rng-lost-cxx": (6, TRAJECTORY | {"batch", "rng"}),
    "rng-drift": (6, TRAJECTORY | {"rng"}),
    "data-cursor": (6, TRAJECTORY | {"batch"}),
    "data-order": (6, TRAJECTORY | {"batch"}),
    "key-miss": (6, TRAJECTORY),
    "tied": (6, {"grad_norm"}),
}


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.straight = Run([])
        cls.clean = Run(["--resume", str(cls.straight.checkpoint(5))])

    def resumed_with(self, fault):
        writer = self.straight
        if fault.endswith("unsaved") or fault == "sched-shift":  # these act in the writer
            writer = Run(["--fault", fault])
            self.assertEqual(writer.steps(), self.straight.steps())
        run = Run(["--resume", str(writer.checkpoint(5)), "--fault", fault])
        self.assertEqual(run.status, 0, run.errors)
        return run

    def test_every_fault_that_the_trainer_knows_is_tested(self):
        usage = subprocess.run([TRAINER, "--help"], capture_output=True, text=True).stdout
        known = usage.split("--fault CAUSE")[1].split("plant one fault:")[1].split("\n")[0]
        tested = {*EFFECTS, "none", "ema", "step-count", "wrong-start"}
        self.assertEqual({name.strip() for name in known.split(",")}, tested)

    def test_each_fault_shows_first_where_it_should(self):
        for fault, effect in EFFECTS.items():
            with self.subTest(fault=fault):
                steps, clean = self.resumed_with(fault).steps(), self.clean.steps()
                self.assertEqual(list(steps), list(clean))
                first = next(step for step in steps if steps[step] != clean[step])
                fields = {key for key in clean[first] if steps[first][key] != clean[first][key]}
                if first == 7:
                    # Other gradients may overflow at another attempt, which moves data and generators;
                    # the rate is the schedule's alone.
                    self.assertGreaterEqual(fields, TRAJECTORY)
                    self.assertNotIn("lr", fields)
                    fields = TRAJECTORY
                self.assertEqual((first, fields), effect)

    def test_ema_fault_shows_in_the_average_alone(self):
        run = self.resumed_with("ema")
        self.assertEqual(run.steps(), self.clean.steps())
        final, clean = run.state("save"), self.clean.state("save")
        self.assertEqual({name for name in clean if final[name] != clean[name]}, {"ema"})

    def test_tied_fault_stores_two_tensors_afterwards(self):
        index = self.resumed_with("tied").index(10)
        self.assertEqual(index["aliases"], {})
        self.assertIn("model.head.weight", index["tensors"])

    def test_step_count_fault_repeats_a_step(self):
        run = self.resumed_with("step-count")
        self.assertEqual(run.of_type("restored")[0]["step"], 4)
        self.assertEqual(list(run.steps())[0], 5)
        for field in ("loss", "batch", "rng", "lr"):
            self.assertEqual(run.steps()[5][field], self.clean.steps()[6][field])

    def test_wrong_start_fault_trains_from_scratch(self):
        run = self.resumed_with("wrong-start")
        self.assertEqual(run.of_type("restored"), [])
        self.assertEqual(run.steps(), self.straight.steps())

    def test_no_fault_is_named_in_what_is_written(self):
        index = (self.resumed_with("opt-map").checkpoint(10) / "index.json").read_text()
        self.assertNotIn("fault", index)
        self.assertNotIn("opt-map", index)


if __name__ == "__main__":
    TRAINER = os.path.abspath(sys.argv.pop(1))
    SCRATCH = Path(tempfile.mkdtemp(prefix="ckptverify-trainer-"))
    os.environ["OMP_NUM_THREADS"] = "1"
    program = unittest.main(exit=False)
    if program.result.wasSuccessful():
        shutil.rmtree(SCRATCH)
    else:
        print(f"kept: {SCRATCH}", file=sys.stderr)
    sys.exit(not program.result.wasSuccessful())
