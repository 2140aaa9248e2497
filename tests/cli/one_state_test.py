"""One state has one fingerprint, however it was saved: one_state_test.py PATH_OF_TOOL

fixtures/files/one-state holds three models, one with tied weights and one without tensors that have no dimensions,
each saved by PyTorch as one file, as shards, by DCP from 1, 2 and 4 ranks along different dimensions, by FSDP2 and by
Hugging Face storage (fixtures/generate/one_state.py). Without tied weights every pair has the same digest and an empty
diff; with them a diff says "tied, stored once" and nothing else. PyTorch 2.13 loses the value of a tensor without
dimensions when it consolidates: there the consolidated export takes no part, and diff must name that tensor alone.
"""

import json
import pathlib
import subprocess
import sys
import unittest

TOOL = sys.argv.pop(1)
GOOD = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "files" / "one-state" / "good"
# What stores a tied tensor once: safetensors cannot alias.
STORED_ONCE = {"export.safetensors", "hf-sharded"}
CONSOLIDATED = "hf-consolidated"  # its model.count is 0, not 41, where that has no dimensions


def report(*arguments):
    done = subprocess.run([TOOL, *map(str, arguments), "--json"], capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1, 2), f"{arguments}: exit {done.returncode}: {done.stderr}"
    return json.loads(done.stdout)


def saved(name):
    return sorted(path for path in (GOOD / name).iterdir() if not path.name.endswith(".oracle.json")
                  and (path.name != CONSOLIDATED or name == "no-scalars"))


class OneState(unittest.TestCase):
    def digests(self, paths):
        components = {path.name: report("hash", path)["components"] for path in paths}
        for name, found in components.items():
            self.assertEqual(list(found), ["model"], name)
        return {name: found["model"]["tensors"] for name, found in components.items()}

    def assert_no_difference(self, first, second, notes):
        found = report("diff", first, second)
        self.assertEqual((found["equal"], found["differences"], found["uninterpreted"]), (True, [], []),
                         (first, second))
        self.assertEqual(found["notes"], notes, (first, second))
        self.assertGreater(found["compared"], 0)

    def test_without_tied_weights_the_model_has_one_digest_and_no_difference(self):
        self.assert_one_state(saved("untied"), 8)

    def test_without_scalars_the_consolidated_export_has_that_digest_too(self):
        paths = saved("no-scalars")
        self.assertIn(CONSOLIDATED, [path.name for path in paths])
        self.assert_one_state(paths, 9)

    def assert_one_state(self, paths, count):
        self.assertEqual(len(paths), count, paths)
        digests = self.digests(paths)
        self.assertEqual(len(set(digests.values())), 1, digests)
        for first in paths:
            for second in paths:
                self.assert_no_difference(first, second, [])

    def test_with_tied_weights_diff_says_that_they_are_stored_once_and_nothing_else(self):
        paths = saved("tied")
        self.assertEqual(len(paths), 8, paths)
        digests = self.digests(paths)
        for once in (True, False):
            alike = {digest for name, digest in digests.items() if (name in STORED_ONCE) == once}
            self.assertEqual(len(alike), 1, digests)
        for first in paths:
            for second in paths:
                parted = (first.name in STORED_ONCE) != (second.name in STORED_ONCE)
                self.assert_no_difference(first, second, self.notes(first if second.name in STORED_ONCE else second)
                                          if parted else [])

    def test_diff_names_what_consolidation_lost_and_nothing_else(self):
        found = report("diff", GOOD / "untied" / "torch.pt", GOOD / "untied" / CONSOLIDATED)
        self.assertEqual([(row["path"], row["kind"]) for row in found["differences"]], [("model.count", "value")])

    def notes(self, path):
        """The note on the tied head, with the prefix that the paths of the side that holds both have."""
        names = [row["path"] for row in report("inspect", path)["tensors"]]
        head, embed = (next(name for name in names if name.endswith(tail)) for tail in ("head.weight", "embed.weight"))
        return [f"tied, stored once: {head} = {embed}"]


if __name__ == "__main__":
    unittest.main()
