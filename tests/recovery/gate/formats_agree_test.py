"""One state, one fingerprint: the trainer saves the same state in every format and sharding; `hash` must
agree, `diff` must be empty, and a flipped bit must be found where it is.

formats_agree_test.py TOOL TRAINER
"""

import itertools
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOL, TRAINER = sys.argv[1:3]
del sys.argv[1:3]
FLIPS = 24  # a format; each must be blamed on the file that holds it


def tool(*arguments):
    run = subprocess.run([TOOL, *arguments, "--json"], capture_output=True, text=True)
    return run.returncode, json.loads(run.stdout) if run.stdout else {"error": run.stderr}


class FormatsAgree(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="ckptverify-formats-"))
        cls.checkpoints = {}
        for name, shards in itertools.product(("hdf5", "safetensors", "torch"), ("1", "4")):
            run_dir = cls.root / f"{name}-{shards}"
            subprocess.run([TRAINER, "train", "--run-dir", str(run_dir), "--steps", "12", "--save-at", "5",
                            "--format", name, "--shards", shards],
                           check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
            cls.checkpoints[name, shards] = run_dir / "checkpoints" / "step-5"

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root)

    def test_all_have_one_fingerprint(self):
        digests = {}
        for key, path in self.checkpoints.items():
            code, report = tool("hash", str(path))
            self.assertEqual(code, 0, report)
            digests[key] = report["fingerprint"]
        self.assertEqual(len(set(digests.values())), 1, digests)

    def test_diff_between_formats_is_empty(self):
        first, *others = self.checkpoints.values()
        for other in others:
            code, report = tool("diff", str(first), str(other))
            self.assertEqual((code, report.get("differences")), (0, []), report)
            self.assertGreater(report["compared"], 50)

    def test_a_flipped_bit_is_blamed_on_its_file(self):
        generator = random.Random(1)
        for (name, shards), path in self.checkpoints.items():
            if shards != "4":
                continue
            damaged = self.root / f"damaged-{name}"
            shutil.copytree(path, damaged)
            shard_files = sorted(file for file in damaged.iterdir() if file.name.startswith("shard-"))
            for _ in range(FLIPS):
                file = generator.choice(shard_files)
                original = file.read_bytes()
                at, bit = generator.randrange(len(original)), generator.randrange(8)
                file.write_bytes(original[:at] + bytes([original[at] ^ 1 << bit]) + original[at + 1:])
                code, report = tool("check", str(damaged))
                file.write_bytes(original)
                with self.subTest(format=name, file=file.name, byte=at, bit=bit):
                    self.assertEqual(code, 1, report)
                    blamed = json.dumps([check for check in report["checks"] if check["status"] == "fail"])
                    self.assertIn(file.name, blamed)


if __name__ == "__main__":
    unittest.main()
