"""README's table of formats is the table that the tool prints: readme_test.py PATH_OF_TOOL."""

import json
import re
import subprocess
import sys
import unittest
from pathlib import Path

TOOL = sys.argv.pop(1)
README = Path(__file__).resolve().parents[2] / "README.md"


class Readme(unittest.TestCase):
    def test_names_every_format_and_no_other(self):
        printed = json.loads(subprocess.run([TOOL, "formats", "--json"], check=True, capture_output=True).stdout)
        rows = re.findall(r"^\| `([a-z0-9-]+)` \| (.*?) \| (.*?) \|$", README.read_text(), re.MULTILINE)
        expected = [(row["name"], row["files"], row["checksums"]) for row in printed["formats"]]
        self.assertEqual(rows, expected)

    def test_names_every_subcommand(self):
        text = subprocess.run([TOOL, "--help"], check=True, capture_output=True, text=True).stdout
        commands = re.findall(r"^  ([a-z]+) ", text[text.index("Subcommands:"):], re.MULTILINE)
        self.assertGreaterEqual(len(commands), 8)
        for command in commands:
            self.assertIn(f"`{command}", README.read_text(), f"README does not mention {command}")


if __name__ == "__main__":
    unittest.main()
