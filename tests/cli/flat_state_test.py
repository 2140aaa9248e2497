"""One rule says what the entries of a flat state are for, whatever holds them: flat_state_test.py PATH_OF_TOOL

fixtures/files/flat-state has each state below as safetensors, npz, HDF5, a torch.save dictionary and a distributed
checkpoint, by the real writers (fixtures/generate/flat_states.py). The rule is docs/fingerprint.md's "Which component".
"""

import itertools
import json
import pathlib
import subprocess
import sys
import unittest

TOOL = sys.argv.pop(1)
GOOD = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "files" / "flat-state" / "good"
FLAT = ("state.safetensors", "state.npz", "state.h5", "state.pt", "dcp")
GROUPED = ("state.h5", "state.pt", "dcp")

# Component and path of every entry.
STATES = {
    "bare": {"w": "model", "b": "model", "step": "step", "epoch": "step", "rng": "rng"},
    "rooted": {"model.w": "model", "model.b": "model", "step": "step", "lr": "other"},
    "nested": {"model.w": "model", "model.b": "model", "step": "step", "lr": "other"},
    "one-model": {"model.embed.weight": "model", "lm_head.weight": "model", "global_step": "step"},
    "parameter": {"w": "model", "step": "model"},
    "sections": {"model.w": "model", "optimizer.w.exp_avg": "optimizer", "rng.cpu": "rng", "step": "step",
                 "ema": "ema"},
    "bare-sections": {"layer.w": "model", "optimizer.layer.w.exp_avg": "optimizer", "rng.cpu": "rng"},
    "model-only": {"model.w": "model", "model.b": "model"},
    "model-and-bare": {"model.w": "model", "bias": "model"},
    "no-model": {"step": "step", "rng_state": "rng", "ema": "ema"},
}


def files_of(state):
    return [GOOD / state / name for name in (GROUPED if state == "nested" else FLAT)]


def report(*arguments):
    done = subprocess.run([TOOL, *map(str, arguments), "--json"], capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1), f"{arguments}: exit {done.returncode}: {done.stderr}"
    return json.loads(done.stdout)


def model_digest(path):
    return report("hash", path)["components"]["model"]["digest"]


class FlatState(unittest.TestCase):
    def test_every_format_files_every_name_under_the_same_component(self):
        for state, expected in STATES.items():
            for path in files_of(state):
                shown = report("inspect", path)
                self.assertEqual({row["path"]: row["component"] for row in shown["tensors"]}, expected, path)

    def test_every_format_gives_a_flat_state_one_fingerprint_and_diff_nothing(self):
        for state in STATES:
            paths = files_of(state)
            self.assertEqual(len({report("hash", path)["fingerprint"] for path in paths}), 1, state)
            for first, second in itertools.combinations(paths, 2):
                self.assertEqual(report("diff", first, second)["differences"], [], (first, second))

    def test_a_key_of_the_model_is_cut_where_it_is_one(self):
        bare = model_digest(GOOD / "bare" / "state.npz")
        for state in ("rooted", "nested"):  # beside a step, or kept as a group of its own
            for path in files_of(state):
                self.assertEqual(model_digest(path), bare, path)
        for path in files_of("model-only"):  # may as well be part of the names
            self.assertNotEqual(model_digest(path), bare, path)

    def test_diff_matches_a_model_key_that_only_one_side_has_in_its_names(self):
        found = report("diff", GOOD / "model-only" / "state.safetensors", GOOD / "bare" / "state.npz")
        self.assertEqual([row for row in found["differences"] if row["component"] == "model"], [])
        self.assertEqual(found["components"]["model"]["equal"], 2)
        self.assertEqual(found["notes"], ["matched without wrappers' prefixes: 2 entries, such as model.b = b"])

    def test_a_required_step_is_found_in_all_of_them(self):
        for path in files_of("bare"):
            self.assertEqual(subprocess.run([TOOL, "check", path, "--require", "step,rng"], capture_output=True,
                                            timeout=60).returncode, 0, path)


if __name__ == "__main__":
    unittest.main()
