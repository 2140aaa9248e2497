"""fixtures/trainer/probe.py writes what docs/events.schema.json allows, whatever it is given.

probe_python_test.py LIBRARY
"""

import json
import os
import pathlib
import struct
import sys
import tempfile
import unittest

import jsonschema

LIBRARY = sys.argv.pop()
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "fixtures" / "trainer"))
import probe  # noqa: E402

SCHEMA = jsonschema.Draft202012Validator(json.loads((ROOT / "docs" / "events.schema.json").read_text()))


class PythonProbe(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ckptverify-probe-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        os.environ["CKPTVERIFY_EVENTS"] = str(self.folder / "{rank}-{pid}.jsonl")
        self.addCleanup(os.environ.pop, "CKPTVERIFY_EVENTS", None)

    def events(self):
        lines = (self.folder / f"0-{os.getpid()}.jsonl").read_bytes().splitlines()
        self.assertLess(max(map(len, lines)), 64 * 1024)
        found = [json.loads(line) for line in lines]
        for event in found:
            SCHEMA.validate(event)
        self.assertEqual([event["seq"] for event in found], list(range(len(found))))
        return found

    def test_values_and_tensors_have_the_digests_of_docs_fingerprint(self):
        readers = {"null": lambda text: None, "bool": bool, "int": int, "string": lambda text: bytes.fromhex(text).decode(),
                   "float": lambda text: struct.unpack(">d", bytes.fromhex(text))[0]}
        vectors = json.loads((ROOT / "tests" / "unit" / "src" / "fingerprint_vectors.json").read_text())["vectors"]
        told, count = probe.Probe(LIBRARY), 0
        for vector in vectors:
            if vector["kind"] == "value" and vector["type"] in readers:
                value = readers[vector["type"]](vector["value"])
            elif vector["kind"] == "tensor" and isinstance(vector["data"], str):
                value = vector["dtype"], vector["shape"], bytes.fromhex(vector["data"])
            else:
                continue
            with self.subTest(vector["name"]):
                self.assertEqual(f"ckv1:{told.entry('x', value)[0]}", vector["digest"])
            count += 1
        self.assertGreater(count, 60)

    def test_numbers_that_are_not_finite_are_strings(self):
        told = probe.Probe(LIBRARY)
        told.emit("step", step=1, loss=float("nan"), lr=[float("inf"), 0.5], rng={"a": told.bytes_digest(b"x")})
        told.emit("eval", step=1, metrics={"loss": float("-inf")})
        step, evaluation = self.events()
        self.assertEqual((step["loss"], step["lr"], evaluation["metrics"]), ("nan", ["inf", 0.5], {"loss": "-inf"}))

    def test_what_programs_hand_over_is_told_and_what_is_no_state_is_left_out(self):
        told = probe.Probe(LIBRARY)
        told.state("save", "save_entry", 5, {"optimizer": {}, "scheduler": {"last": [1, {"x": b"y"}], "none": []},
                                             "rng": {"state": {"state": 2**127 + 3, "inc": -2**80}},
                                             "other": {"object": object()}})
        (event,) = self.events()
        paths = {name: [entry["path"] for entry in each["entries"]] for name, each in event["components"].items()}
        self.assertEqual(paths, {"optimizer": [], "scheduler": ["last.0", "last.1.x", "none"],
                                 "rng": ["state.state", "state.inc"]})

    def test_arrays_are_tensors_and_scalars_values_where_numpy_is_there(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("there is no numpy")
        told = probe.Probe(LIBRARY)
        for array in (numpy.arange(6, dtype=numpy.float32).reshape(2, 3), numpy.array(7, dtype=">i8"),
                      numpy.arange(6, dtype=numpy.int16).reshape(2, 3).T, numpy.zeros((0, 2), dtype=bool)):
            little = array.astype(array.dtype.newbyteorder("<"))
            _, entry = told.entry("x", array)
            self.assertEqual(entry, told.entry("x", (array.dtype.name, array.shape, little.tobytes()))[1])
        self.assertEqual(told.entry("x", numpy.float64(0.5))[1], told.entry("x", 0.5)[1])
        self.assertEqual(told.entry("x", numpy.int64(-3))[1], told.entry("x", -3)[1])
        self.assertEqual(told.entry("x", numpy.bool_(True))[1], told.entry("x", True)[1])

    def test_a_large_state_goes_to_a_side_file(self):
        told = probe.Probe(LIBRARY)
        values = {f"layer.{i}": ("float32", [1], b"\0\0\0\0") for i in range(1000)}
        told.state("save", "save_entry", 5, {"model": values, "step": {"step": 5}})
        (event,) = self.events()
        side = json.loads((self.folder / event["side"]).read_text())
        self.assertEqual((len(side["model"]["entries"]), list(side)), (1000, ["model", "step"]))
        SCHEMA.validate({**{k: v for k, v in event.items() if k != "side"}, "components": side})

    def test_it_goes_silent_where_it_cannot_write_and_is_nothing_without_the_harness(self):
        os.environ["CKPTVERIFY_EVENTS"] = str(self.folder / "absent" / "file")
        told = probe.Probe(LIBRARY)
        told.emit("end", reason="finished")
        told.emit("end", reason="finished")
        del os.environ["CKPTVERIFY_EVENTS"]
        told = probe.Probe("no such library")
        told.state("init", "construction", 0, {"model": {"w": 1.0}})
        self.assertIsNone(told.bytes_digest(b"x"))
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unittest.main()
