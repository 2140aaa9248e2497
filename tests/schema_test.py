"""Holds the reports that the unit tests rendered against docs/report.schema.json, and shows that the schema
refuses what it must.

schema_test.py SCHEMA FOLDER
"""

import copy
import json
import pathlib
import sys
import unittest

import jsonschema

SCHEMA, FOLDER = map(pathlib.Path, sys.argv[1:3])
del sys.argv[1:3]


class ReportSchema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        schema = json.loads(SCHEMA.read_text())
        jsonschema.Draft7Validator.check_schema(schema)
        cls.validator = jsonschema.Draft7Validator(schema)
        cls.run_report = json.loads((FOLDER / "run.json").read_text())
        cls.check_report = json.loads((FOLDER / "check.json").read_text())

    def test_rendered_reports_are_valid(self):
        for report in (self.run_report, self.check_report):
            self.assertEqual([error.message for error in self.validator.iter_errors(report)], [])

    def test_every_rendered_member_is_described(self):
        self.assertEqual(set(self.run_report), set(self.validator.schema["properties"]))

    def test_no_member_can_be_missing(self):
        for member in self.run_report:
            report = copy.deepcopy(self.run_report)
            del report[member]
            self.assertFalse(self.validator.is_valid(report), member)

    def test_a_pass_has_no_cause(self):
        self.assertFalse(self.validator.is_valid({**self.run_report, "verdict": "pass"}))

    def test_only_a_failed_check_has_a_cause(self):
        report = copy.deepcopy(self.run_report)
        report["checks"][0]["cause"] = "ema"
        self.assertFalse(self.validator.is_valid(report))

    def test_statuses_are_closed(self):
        report = copy.deepcopy(self.run_report)
        report["checks"][0]["status"] = "passed"
        self.assertFalse(self.validator.is_valid(report))


if __name__ == "__main__":
    unittest.main()
