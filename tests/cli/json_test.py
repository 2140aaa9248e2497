"""docs/json.md says what --json prints: json_test.py PATH_OF_TOOL

Every field that a command prints for any of the samples is in the page's table of that command and has one of the
types that it says; every field of a table is printed for some sample.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOL = sys.argv.pop(1)
ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = ROOT / "fixtures" / "files"
TYPES = {"string": str, "strings": str, "integer": int, "integers": int, "number": (int, float, str),
         "numbers": (int, float, str), "true": bool, "false": bool, "truth": bool, "null": type(None)}


def tables():
    """section -> {field: first words of what it says}"""
    found, section = {}, None
    for line in (ROOT / "docs" / "json.md").read_text().splitlines():
        if line.startswith("## "):
            section = line[3:]
            found[section] = {}
        elif row := re.match(r"\| `([^`]+)` \| (.*) \|$", line):
            found[section][row[1]] = row[2]
    return found


def leaves(node, path=""):
    """(path, leaf): "tensors[].path" and what stands there; empty lists and objects are leaves."""
    if isinstance(node, dict) and node:
        for key, value in node.items():
            yield from leaves(value, f"{path}\0{key}" if path else key)
    elif isinstance(node, list) and node:
        for value in node:
            yield from leaves(value, path + "[]")
    else:
        yield path, node


def pattern(field):
    """A field of the page as an expression over the paths of leaves()."""
    parts = [r"[^\0]*?" if part.startswith("<") else re.escape(part) for part in field.split(".")]
    return re.compile("\0".join(parts))


def types_of(text):
    words = re.split(r"[:;,.]", text)[0].split(" ")
    return tuple(kind for word in words for kind in [TYPES.get(word)] if kind)


def flattened(kinds):
    return tuple(one for kind in kinds for one in (kind if isinstance(kind, tuple) else (kind,)))


class JsonPage(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ckptverify-json-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def printed(self, *arguments):
        done = subprocess.run([TOOL, *map(str, arguments), "--json"], capture_output=True, text=True, timeout=60)
        return json.loads(done.stdout)

    def damaged(self):
        """A torch.save file with a flipped bit in its largest record."""
        data = bytearray((FILES / "torch-zip" / "good" / "shared.pt").read_bytes())
        place = data.find(b"data/0") + 200
        data[place] ^= 1
        path = self.folder / "damaged.pt"
        path.write_bytes(data)
        return path

    def hold(self, section, samples):
        table = tables()[section]
        self.assertGreater(len(table), 3)
        expressions = {field: pattern(field) for field in table}
        seen = set()
        for sample in samples:
            for path, leaf in leaves(sample):
                empty = leaf in ([], {}) and not path.endswith("value")
                fields = [field for field, expression in expressions.items() if expression.fullmatch(path)]
                if empty and not fields:
                    started = path.replace("\0", ".")
                    self.assertTrue(any(field.startswith((started + ".", started + "[]")) for field in table), path)
                    continue
                self.assertEqual(len(fields), 1, path)
                seen.add(fields[0])
                kinds = flattened(types_of(table[fields[0]]))
                if kinds and not empty:
                    self.assertIsInstance(leaf, kinds, path)
                    self.assertFalse(isinstance(leaf, bool) and bool not in kinds, path)
        self.assertEqual(set(table) - seen, set(), "documented and never printed")

    def test_of_errors(self):
        cut = self.folder / "cut.pt"
        cut.write_bytes((FILES / "torch-zip" / "good" / "shared.pt").read_bytes()[:1000])
        header = b'{"w":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}}'
        wrong = self.folder / "wrong.safetensors"
        wrong.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
        self.hold("An error", [self.printed("inspect", self.folder / "nothing"), self.printed("hash", cut),
                               self.printed("diff", cut, cut), self.printed("inspect", wrong), self.printed("bogus")])

    def test_of_inspect(self):
        good = FILES / "torch-zip" / "good"
        full = good / "full.pt"
        name = next(row["path"] for row in self.printed("inspect", full)["tensors"] if row["shape"])
        nested = [path for path in sorted(good.rglob("*.pt"))]
        self.hold("inspect", [self.printed("inspect", full, "--stats", "--digest", "ckv1"),
                              self.printed("inspect", full, "--tensor", name, "--print"),
                              self.printed("inspect", self.damaged(), "--digest", "ckv1"),
                              self.printed("inspect", FILES / "orbax" / "good" / "100")]
                  + [self.printed("inspect", path, "--digest", "ckv1") for path in nested]
                  + [self.printed("inspect", path) for path in sorted((FILES / "collection").rglob("*"))
                     if path.is_dir() and path.parent.name in ("good", "bad")])

    def test_of_hash(self):
        full = FILES / "torch-zip" / "good" / "full.pt"
        uninterpreted = [path for path in sorted((FILES / "orbax" / "good").iterdir()) if path.is_dir()]
        self.hold("hash", [self.printed("hash", full), self.printed("hash", full, "--files"),
                           self.printed("hash", self.damaged())] +
                  [self.printed("hash", path) for path in uninterpreted])

    def test_of_diff(self):
        state = FILES / "flat-state" / "good"
        orbax = [path for path in sorted((FILES / "orbax" / "good").iterdir()) if path.is_dir()][:1]
        self.hold("diff", [self.printed("diff", state / one / "state.pt", state / other / "state.npz")
                           for one, other in (("bare", "bare"), ("bare", "parameter"), ("rooted", "sections"),
                                              ("model-only", "bare"), ("no-model", "one-model"))] +
                  [self.printed("diff", path, path) for path in orbax] +
                  [self.printed("diff", *(FILES / "hf-trainer" / "good" / "torch-2.11-cuda" / name
                                          for name in ("checkpoint-5", "checkpoint-10")))])

    def test_of_formats(self):
        self.hold("formats", [self.printed("formats")])


if __name__ == "__main__":
    unittest.main()
