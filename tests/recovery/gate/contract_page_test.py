"""docs/trainer-contract.md keeps its word: its trainer is the example, its command line compiles it, and
the gate passes it.

contract_page_test.py TOOL DIRECTORY_OF_THE_DIGEST_LIBRARY COMPILER
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

COMPILER, LIBRARY, TOOL = sys.argv.pop(), sys.argv.pop(), sys.argv.pop()
ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "trainer-contract.md").read_text()
EXAMPLE = ROOT / "fixtures" / "trainer" / "contract_example.cc"


def block(language):
    return re.search(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL).group(1)


class ContractPage(unittest.TestCase):
    def test_shows_the_example_as_it_is(self):
        source = EXAMPLE.read_text()
        self.assertEqual(block("cpp"), source[source.index("#include"):])

    def test_shows_the_python_probe_and_its_calls_as_they_are(self):
        probe, calls = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
        source = EXAMPLE.with_name("probe.py").read_text()
        self.assertEqual(probe, source[source.index("import ctypes"):])
        source = EXAMPLE.with_suffix(".py").read_text()
        begin, end = source.index("    probe, training = Probe("), source.index("\n\nmain()")
        self.assertEqual(calls, textwrap.dedent(source[begin:end]))

    def test_compiles_the_example_to_a_trainer_that_passes(self):
        compile_line = block("console").replace("\\\n", "").splitlines()[0]
        self.assertTrue(compile_line.startswith("$ g++ "), compile_line)
        with tempfile.TemporaryDirectory(prefix="ckptverify-contract-") as folder:
            line = compile_line.replace("$ g++ ", f"'{COMPILER}' ", 1)
            line = line.replace("build/release/contract_example", f"'{folder}/contract_example'")
            line = re.sub(r"(?:\$PWD/)?build/release", lambda _: LIBRARY.replace(" ", "\\ "), line)
            subprocess.run(line, shell=True, check=True, cwd=ROOT)
            plan = EXAMPLE.with_suffix(".toml").read_text()
            self.assertEqual(plan.count("{tool_dir}/"), 2)
            path = pathlib.Path(folder) / "plan.toml"
            path.write_text(plan.replace("{tool_dir}/", "{plan_dir}/"))
            gate = subprocess.run([TOOL, "run", path, "--out", folder + "/out"], capture_output=True, text=True)
            self.assertEqual(gate.returncode, 0, gate.stdout + gate.stderr)


if __name__ == "__main__":
    unittest.main()
