"""The rules check must be able to go red: each rule is broken once, in a copy of nothing but that file."""

import tempfile
import unittest
from pathlib import Path

import rules

HEADERS = ["include/ckptverify/bytes.h", "harness/plan.h", "formats/hdf5.h", "formats/torch_zip.h",
           "formats/container/zip.h", "src/report/json.h"]

# path, include line, what the message must say (None: allowed)
CASES = [
    ("src/bytes.cc", '#include "harness/plan.h"', "may not include harness/plan.h"),
    ("harness/judge.cc", '#include "formats/hdf5.h"', "may not include formats/hdf5.h"),
    ("formats/torch_zip.cc", '#include "formats/hdf5.h"', "may not include formats/hdf5.h"),
    ("formats/torch_zip.cc", '#include "formats/container/zip.h"', None),
    ("formats/container/zip.cc", '#include "formats/hdf5.h"', "may not include formats/hdf5.h"),
    ("include/ckptverify/source.h", '#include "formats/hdf5.h"', "may not include formats/hdf5.h"),
    ("include/ckptverify/source.h", "#include <xxhash.h>", "public headers include"),
    ("include/ckptverify/source.h", "#include <boost/asio.hpp>", "public headers include"),
    ("src/bytes.cc", "#include <xxhash.h>", "belongs to src/fingerprint.cc"),
    ("src/report/json.cc", "#include <CLI/CLI.hpp>", "belongs to src/cli/"),
    ("harness/judge.cc", "#include <boost/asio.hpp>", "belongs to harness/launch."),
    ("formats/hdf5.cc", "#include <hdf5.h>", "belongs to formats/container/hdf5_"),
    ("src/cli/run.cc", "#include <torch/torch.h>", "belongs to nowhere in the tool"),
    ("src/cli/run.cc", '#include "nowhere.h"', "is no file of the repository"),
    ("src/cli/run.cc", '#include "ckptverify/bytes.h"', None),
    ("harness/judge.cc", "#include <vector>", None),
]


class Rules(unittest.TestCase):
    def test_each_rule_can_be_broken(self):
        for path, include, expected in CASES:
            with self.subTest(path=path, include=include), tempfile.TemporaryDirectory() as root:
                for name in HEADERS + [path]:
                    file = Path(root) / name
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text("")
                (Path(root) / path).write_text(include + "\n")
                rules.ROOT = Path(root)
                found = [what for _, what in rules.check(path)]
                if expected is None:
                    self.assertEqual(found, [])
                else:
                    self.assertEqual(len(found), 1, found)
                    self.assertIn(expected, found[0])


if __name__ == "__main__":
    unittest.main()
