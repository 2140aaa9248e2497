"""What people see of check, inspect, hash and diff: people_test.py PATH_OF_TOOL

Trees, filters, statistics, elements, summaries, and errors that name the checkpoint first. Inputs are small
safetensors files written here and real files of fixtures/files.
"""

import importlib.util
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

TOOL = sys.argv.pop(1)
ROOT = pathlib.Path(__file__).resolve().parents[2]
TORCH = ROOT / "fixtures" / "files" / "torch-zip" / "good" / "shared.pt"


def run(*arguments):
    return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=60)


def floats(*numbers):
    return ("F32", [len(numbers)], struct.pack(f"<{len(numbers)}f", *numbers))


def write_safetensors(path, tensors):
    """tensors: name -> (dtype, shape, bytes)."""
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


class People(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ckptverify-people-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, tensors):
        return write_safetensors(self.folder / name, tensors)

    def output(self, code, *arguments):
        done = run(*arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def test_errors_under_json_are_json_with_the_commands_schema(self):
        missing = self.folder / "missing"
        for command in (["check", missing], ["inspect", missing], ["hash", missing], ["diff", TORCH, missing]):
            done = run(*command, "--json")
            self.assertEqual(done.returncode, 66)
            report = json.loads(done.stdout)
            self.assertEqual(report["schema"], f"ckptverify.{command[0]}/1")
            self.assertEqual(report["error"]["kind"], "unreadable")
            self.assertEqual(report["error"]["exit_code"], 66)
            self.assertIn(str(missing), report["error"]["text"])
            self.assertEqual(done.stderr, f"ckptverify: {report['error']['text']}\n")

    def test_an_error_names_the_side_that_it_is_on(self):
        cut = self.folder / "cut.pt"
        cut.write_bytes(TORCH.read_bytes()[:1000])
        for pair in ((cut, TORCH), (TORCH, cut)):
            done = run("diff", *pair)
            self.assertEqual(done.returncode, 2)  # 1 is that they differ
            self.assertTrue(done.stderr.startswith(f"ckptverify: {cut}"), done.stderr)
            self.assertNotIn("shared.pt", done.stderr)

    def test_inspect_is_a_tree_in_natural_order_with_sizes_and_shares(self):
        path = self.write("m.safetensors", {f"layers.{i}.{name}": floats(1, 2)
                                            for i in (10, 9) for name in ("w", "b")} | {"head.w": floats(*range(8))})
        lines = [line.rstrip() for line in self.output(0, "inspect", path).splitlines()]
        self.assertEqual(lines[0], "format safetensors, 1 file, 5 entries, 64 B of tensors")
        names = [line[:36].rstrip() for line in lines[3:]]
        self.assertEqual(names, ["  head.w", "  layers", "    9", "      b", "      w", "    10", "      b", "      w"])
        self.assertRegex(lines[2], r"^model +5 entries +64 B +100\.0 %$")
        self.assertRegex(lines[4], r"^  layers +4 entries +32 B +50\.0 %$")
        self.assertRegex(lines[3], r"^  head\.w +float32 \[8\] +32 B +50\.0 %$")

    def test_inspect_filters_by_glob_expression_and_component(self):
        path = self.write("m.safetensors", {"a.bias": floats(1), "a.weight": floats(1), "b.bias": floats(1)})

        def paths(*arguments):
            return [row["path"] for row in
                    json.loads(self.output(0, "inspect", path, "--json", *arguments))["tensors"]]
        self.assertEqual(paths("--filter", "*.bias"), ["a.bias", "b.bias"])
        self.assertEqual(paths("--filter", r"^a\."), ["a.bias", "a.weight"])
        self.assertEqual(paths("--component", "model", "--filter", "weight"), ["a.weight"])
        self.assertEqual(paths("--component", "optimizer"), [])
        self.assertIn("no entry is of the component optimizer",
                      self.output(0, "inspect", path, "--component", "optimizer"))
        done = run("inspect", path, "--filter", "c.*")
        self.assertEqual((done.returncode, done.stdout), (64, ""))
        self.assertIn("--filter: no path matches 'c.*'; found 3 entries, such as a.bias", done.stderr)
        self.assertEqual(run("inspect", path, "--component", "modle").returncode, 64)
        self.assertEqual(run("inspect", path, "--filter", "(").returncode, 64)

    def test_inspect_takes_the_names_that_its_tree_shows(self):
        full = ROOT / "fixtures" / "files" / "torch-zip" / "good" / "full.pt"
        lightning = ROOT / "fixtures" / "files" / "lightning" / "good" / "lightning-2.6.6" / "best.ckpt"
        for path, name, found in ((lightning, "model.net.head.bias", "state_dict.net.head.bias"),
                                  (lightning, "state_dict.net.head.bias", "state_dict.net.head.bias"),
                                  (lightning, "net.head.bias", "state_dict.net.head.bias"),
                                  (full, "step.step", "step"), (full, "step", "step")):
            shown = json.loads(self.output(0, "inspect", path, "--tensor", name, "--json"))
            self.assertEqual([row["path"] for row in shown["tensors"] + shown["values"]], [found], name)
        self.assertIn("\nmodel (state_dict.)", self.output(0, "inspect", lightning))
        self.assertIn("net", self.output(0, "inspect", lightning, "--filter", "^model.net.head"))
        self.assertEqual(run("inspect", lightning, "--tensor", "model.head.nothing").returncode, 64)

    def test_the_examples_of_the_help_of_inspect_work(self):
        full = ROOT / "fixtures" / "files" / "torch-zip" / "good" / "full.pt"
        text = self.output(0, "inspect", "--help")
        (example,) = [line for line in text.splitlines() if "--filter '" in line]
        pattern = example.split("--filter '")[1].split("'")[0]
        self.assertIn("bias", self.output(0, "inspect", full, "--filter", pattern, "--stats"))

    def test_inspect_shows_nothing_twice(self):
        text = self.output(0, "inspect", ROOT / "fixtures" / "files" / "torch-zip" / "good" / "full.pt")
        self.assertNotIn("null null", text)
        self.assertNotIn(" 0 B ", text)

    def test_inspect_knows_what_the_numbers_are_like(self):
        path = self.write("m.safetensors", {"w": floats(-1, 0, 4, float("nan"), float("inf"))})
        row = json.loads(self.output(0, "inspect", path, "--stats", "--json"))["tensors"][0]
        self.assertEqual(row["statistics"], {"count": 5, "nan": 1, "infinite": 1, "zero": 1, "min": -1.0,
                                             "max": 4.0, "mean": 1.0})
        self.assertIn("min -1           max 4            mean 1            nan 1     inf 1     zero 1",
                      self.output(0, "inspect", path, "--stats"))

    def test_no_line_of_inspect_and_diff_is_wider_than_a_screen(self):
        long = "layer." * 700 + "w"  # 4 KB
        first = self.write("a.safetensors", {long: floats(-1.25e-30, 1), "w": floats(*range(9)),
                                             "attention_of_a_long_name.with_a_long_name": floats(1)})
        second = self.write("b.safetensors", {long: floats(-1.75e-31, 2), "w": floats(*range(1, 10)),
                                              "v" * 300: floats(2)})
        outputs = [self.output(0, "inspect", first, "--stats", "--digest", digest) for digest in ("ckv1", "sha256")]
        outputs += [self.output(0, "inspect", TORCH, "--stats", "--digest", "sha256"), self.output(1, "diff", first, second)]
        for text in outputs:
            self.assertLessEqual(max(map(len, text.splitlines())), 100, text)
        self.assertIn("...(4201 characters)...", outputs[0])
        columns = [line.index("float32") for line in outputs[0].splitlines() if "float32" in line]
        self.assertEqual(len(set(columns)), 1, outputs[0])

    def test_inspect_prints_elements_with_indices_up_to_a_limit(self):
        path = self.write("m.safetensors", {"w": ("I32", [3, 2], struct.pack("<6i", *range(6)))})
        text = self.output(0, "inspect", path, "--tensor", "w", "--print", "--limit", "3")
        self.assertEqual(text.splitlines()[1:], [
            "  [0, 0..1]  0 1", "  [1, 0]  2", "  ... and 3 more elements: --limit 0 prints all"])
        whole = json.loads(self.output(0, "inspect", path, "--tensor", "w", "--print", "--json"))
        self.assertEqual(whole["elements"]["elements"], [0, 1, 2, 3, 4, 5])
        path = self.write("n.safetensors", {"w": floats(0.25, -0.0, float("inf"), float("nan"))})
        whole = json.loads(self.output(0, "inspect", path, "--tensor", "w", "--print", "--json"))
        self.assertEqual(whole["elements"]["elements"], [0.25, -0.0, "inf", "nan"])
        path = self.write("m.safetensors", {"w": ("I32", [3, 2], struct.pack("<6i", *range(6)))})
        self.assertEqual(run("inspect", path, "--print").returncode, 64)
        self.assertEqual(run("inspect", path, "--tensor", "v", "--print").returncode, 64)

    def test_names_cannot_command_the_terminal(self):
        path = self.write("m.safetensors", {"w\x1b[2J": floats(1)})
        other = self.write("o.safetensors", {"w": floats(1)})
        self.assertNotIn("\x1b", self.output(0, "inspect", path))
        self.assertNotIn("\x1b", self.output(1, "diff", path, other))

    def test_diff_summarises_by_component_and_puts_the_worst_first(self):
        first = self.write("a.safetensors", {"mild": floats(1, 2), "same": floats(1), "wild": floats(1, 2)})
        second = self.write("b.safetensors", {"mild": floats(1, 2.001), "same": floats(1), "wild": floats(9, 2)})
        lines = self.output(1, "diff", first, second).splitlines()
        self.assertEqual(lines[0], "2 differences; 3 entries are in both")
        table = [line.split() for line in lines if line.startswith("  model")]
        self.assertEqual(table, [["model", "1", "2", "0", "0", "20", "B", "20", "B"]])
        self.assertEqual(lines[-6:], [
            "model, the worst first",
            "  wild", "      1.0 and 9.0; 1 of 2 elements, the first at [0]; max abs 8, rel 0.8889, 26214400 ulp",
            "  mild", "      2.0 and 2.000999927520752; 1 of 2 elements, the first at [1]",
            "      max abs 0.0009999, rel 0.0004997, 4194 ulp"])
        report = json.loads(self.output(1, "diff", first, second, "--json"))
        self.assertEqual(report["components"]["model"], {"equal": 1, "differing": 2, "missing": 0, "unexpected": 0,
                                                         "first_bytes": 20, "second_bytes": 20})
        self.assertEqual(run("diff", first, second, "--atol", "0.01").returncode, 1)
        self.assertEqual(run("diff", first, second, "--atol", "8").returncode, 0)

    def test_diff_lists_some_of_every_component_and_measures_from_zero(self):
        names = [f"optimizer.{i}" for i in range(40)]
        first = self.write("a.safetensors", {name: floats(0) for name in names} |
                           {"model.w": floats(*range(6)), "step": ("I64", [], struct.pack("<q", 5))})
        second = self.write("b.safetensors", {name: floats(1e-5 * i) for i, name in enumerate(names)} |
                            {"model.w": floats(*range(5), 7), "step": ("I64", [], struct.pack("<q", 6))})
        text = self.output(1, "diff", first, second)
        self.assertIn("  model.w\n      5.0 and 7.0; 1 of 6 elements, the first at [5]; max abs 2,", text)
        self.assertIn("  step\n      5 and 6; 1 of 1 element; max abs 1", text)
        listed = [line.strip() for line in text.splitlines() if line.startswith("  optimizer.")]
        self.assertEqual(listed, [f"optimizer.{i}" for i in range(39, 21, -1)])  # 20 lines, two of them others'
        self.assertIn("  ... and 21 more\n", text)
        everything = self.output(1, "diff", first, second, "--all")
        self.assertEqual(everything.count("  optimizer."), 39)

    def test_diff_says_where_one_path_is_filed_and_never_that_it_is_missing(self):
        first = self.write("a.safetensors", {"w": floats(1), "step": ("I64", [], struct.pack("<q", 5))})
        second = self.write("b.safetensors", {"w": floats(1), "step": floats(5, 6)})
        text = self.output(1, "diff", first, second)
        self.assertIn("  step\n      filed under step in A, model in B\n", text)
        self.assertNotIn("only in A:", text)
        kinds = [(row["path"], row["kind"]) for row in
                 json.loads(self.output(1, "diff", first, second, "--json"))["differences"]]
        self.assertEqual(kinds, [("step", "component"), ("step", "dtype")])

    def test_a_tolerance_that_is_no_number_is_named(self):
        for option in ("--rtol", "--atol"):
            for text in ("abc", "-1", "nan", "1e"):
                done = run("diff", TORCH, TORCH, f"{option}={text}")
                self.assertEqual(done.returncode, 64, text)
                self.assertTrue(done.stderr.startswith(f"ckptverify: diff: {option}: found '{text}', expected a "
                                                       "number, 0 or more\n"), done.stderr)

    def test_diff_sees_through_wrappers_unless_told_otherwise(self):
        first = self.write("a.safetensors", {"module.h.w": floats(1, 2)})
        second = self.write("b.safetensors", {"_orig_mod.h.w": floats(1, 2)})
        self.assertIn("matched without wrappers' prefixes: 1 entry", self.output(0, "diff", first, second))
        self.assertEqual(run("diff", first, second, "--exact-names").returncode, 1)

    def test_check_is_strict_where_asked_and_takes_a_map_of_components(self):
        path = self.write("m.safetensors", {"w": floats(float("nan")), "teacher.w": floats(1)})
        self.assertEqual(run("check", path).returncode, 0)
        self.assertEqual(run("check", path, "--strict").returncode, 1)
        self.assertEqual(run("check", path, "--require", "ema").returncode, 1)
        self.assertEqual(run("check", path, "--require", "ema", "--component-map", r"^teacher\.=ema").returncode, 0)
        self.assertEqual(run("check", path, "--component-map", "x=nonsense").returncode, 64)
        self.assertEqual(run("check", path, "--component-map", "(=ema").returncode, 64)

    def test_hash_of_a_file_is_what_the_definition_says(self):
        spec = importlib.util.spec_from_file_location("reference", ROOT / "tests" / "fingerprint_reference.py")
        reference = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(reference)
        digest = "ckv1:" + reference.file_digest(TORCH.read_bytes()).hex()
        report = json.loads(self.output(0, "hash", TORCH, "--files", "--json"))
        self.assertEqual(report["files"][0]["digest"], digest)
        self.assertIn(f"{digest}  file {TORCH}", self.output(0, "hash", TORCH, "--files"))
        report = json.loads(self.output(0, "hash", TORCH, "--json"))
        self.assertEqual(list(report["files"][0]), ["name", "bytes"])

    def test_what_is_missing_is_named_as_its_file(self):
        files = ROOT / "fixtures" / "files"
        for good, gone, name in (
                (files / "deepspeed" / "good" / "zero2_w2" / "save", "global_step2/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt",
                 "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt"),
                (files / "deepspeed" / "good" / "zero2_w2" / "save", "global_step2/mp_rank_00_model_states.pt",
                 "mp_rank_00_model_states.pt"),
                (files / "megatron" / "good" / "legacy_tp2", "iter_0000007/mp_rank_01/model_optim_rng.pt", "mp_rank_01"),
                (files / "rank-files" / "bad" / "hole", None, "rank1.pt"),
                (files / "torchsnapshot" / "good" / "one_rank" / "snapshot", ".snapshot_metadata", ".snapshot_metadata")):
            copy = self.folder / f"copy-{name}"
            shutil.copytree(good, copy)
            if gone:
                (copy / gone).unlink()
            report = json.loads(self.output(1, "check", copy, "--json"))
            failed = [check["message"] for check in report["checks"] if check["status"] == "fail"]
            self.assertTrue(any(name in message for message in failed), failed)
            self.assertIn({".snapshot_metadata": "uncommitted"}.get(name, "shard-missing"),
                          [cause["id"] for cause in report["causes"]])

    def test_damage_is_told_wherever_bytes_are_read_and_names_the_tensor(self):
        data = bytearray((ROOT / "fixtures" / "files" / "torch-zip" / "good" / "full.pt").read_bytes())
        data[data.find(b"/data/10") + 300] ^= 1
        path = self.folder / "damaged.pt"
        path.write_bytes(data)
        report = json.loads(self.output(1, "check", path, "--json"))
        (failed,) = [check for check in report["checks"] if check["status"] == "fail"]
        self.assertEqual(failed["id"], "static.checksums")
        tensor = {row["name"]: row["value"] for row in failed["evidence"]}["tensors"]
        self.assertRegex(failed["message"], rf"^data/10 in {path}: byte [0-9]+: the crc32 of 2048 bytes is wrong; found "
                                            rf"[0-9a-f]+, expected [0-9a-f]+; they are of {tensor}$")
        said = f"damaged: {failed['message']}\n"
        self.assertIn(said, self.output(1, "hash", path))
        self.assertIn(said, self.output(1, "inspect", path, "--stats"))
        self.assertIn(said, self.output(1, "inspect", path, "--tensor", tensor, "--print"))
        self.assertNotIn("damaged", self.output(0, "inspect", path, "--tensor", "loss", "--print"))
        self.assertNotIn("damaged", self.output(0, "inspect", path))  # reads no tensor's bytes, as its help says
        self.assertEqual(json.loads(self.output(1, "hash", path, "--json"))["damaged"], [failed["message"]])

    def test_nothing_is_shown_of_progress_without_a_terminal(self):
        self.assertEqual(run("hash", TORCH).stderr, "")

    def test_a_fifo_in_a_directory_is_told(self):
        folder = self.folder / "checkpoint"
        shutil.copytree(ROOT / "fixtures" / "files" / "sharded" / "good" / "safetensors" / "step-5", folder)
        os.mkfifo(folder / "pipe")
        report = json.loads(run("check", folder, "--json").stdout)
        self.assertIn("pipe", [check["subject"] for check in report["checks"]])


if __name__ == "__main__":
    unittest.main()
