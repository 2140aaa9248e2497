"""The command line as people and scripts see it: commands_test.py PATH_OF_TOOL

Exit codes, messages and JSON fields, on real files of fixtures/files.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOL = sys.argv.pop(1)
FILES = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "files"
TORCH = FILES / "torch-zip" / "good" / "shared.pt"
SAFETENSORS = FILES / "safetensors" / "good" / "dtypes.safetensors"


def run(*arguments):
    return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=60)


class Commands(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ckptverify-cli-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def damaged(self, source, at, mask=0x10):
        data = bytearray(source.read_bytes())
        data[at] ^= mask
        path = self.folder / source.name
        path.write_bytes(data)
        return path

    def json_of(self, code, *arguments):
        done = run(*arguments, "--json")
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)

    def test_help_of_every_command_has_an_example(self):
        for command in ("run", "check", "inspect", "hash", "diff", "init", "doctor", "formats"):
            done = run(command, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("Example", done.stdout, command)

    def test_wrong_usage_is_64(self):
        for arguments in ((), ("nothing",), ("check",), ("check", TORCH, "--no-such"),
                          ("check", TORCH, "--require", "nonsense"), ("diff", TORCH, TORCH, "--map", "x"),
                          ("diff", TORCH, TORCH, "--map", "(=x"), ("run", self.folder / "no.toml", "--set", "x")):
            self.assertEqual(run(*arguments).returncode, 64, arguments)

    def test_an_input_that_cannot_be_opened_is_66(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        for path in (self.folder / "missing", fifo, "/dev/null"):
            for command in ("check", "inspect", "hash"):
                done = run(command, path)
                self.assertEqual((done.returncode, done.stdout), (66, ""), done)
                self.assertIn(str(path), done.stderr)

    def test_what_is_no_checkpoint_is_never_clean(self):
        pointer = self.folder / "pointer.pt"
        pointer.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n")
        report = self.json_of(1, "check", pointer)
        self.assertEqual(report["causes"][0]["id"], "impostor")
        text = self.folder / "notes.txt"
        text.write_text("not a checkpoint at all\n")
        self.assertEqual(self.json_of(2, "check", text)["verdict"], "inconclusive")

    def test_check_passes_a_good_file_and_says_what_it_proved(self):
        report = self.json_of(0, "check", TORCH)
        self.assertEqual((report["schema"], report["verdict"]), ("ckptverify.check/1", "pass"))
        self.assertTrue(report["proven"])
        self.assertEqual(report["causes"], [])

    def test_check_names_the_record_and_file_of_a_flipped_bit(self):
        at = TORCH.read_bytes().index(b"data/0") + 200
        report = self.json_of(1, "check", self.damaged(TORCH, at))
        self.assertEqual(report["causes"][0]["id"], "bitrot")
        blamed = json.dumps([check for check in report["checks"] if check["status"] == "fail"])
        self.assertIn("data/0", blamed)
        self.assertIn("shared.pt", blamed)

    def test_diff_names_the_tensor_of_a_flipped_bit(self):
        size = SAFETENSORS.stat().st_size
        report = self.json_of(1, "diff", SAFETENSORS, self.damaged(SAFETENSORS, size - 1))
        self.assertFalse(report["equal"])
        self.assertEqual(len(report["differences"]), 1)
        self.assertEqual(report["differences"][0]["differing_count"], 1)

    def test_diff_of_a_file_with_itself_is_empty(self):
        report = self.json_of(0, "diff", TORCH, TORCH)
        self.assertEqual((report["equal"], report["differences"]), (True, []))
        self.assertGreater(report["compared"], 0)

    def test_hash_is_of_content_and_files_are_listed(self):
        copy = self.folder / "another-name.pt"
        shutil.copy(TORCH, copy)
        first, second = self.json_of(0, "hash", TORCH), self.json_of(0, "hash", copy)
        self.assertEqual(first["fingerprint"], second["fingerprint"])
        self.assertRegex(first["fingerprint"], "^ckv1:[0-9a-f]{32}$")
        self.assertEqual(first["files"][0]["bytes"], TORCH.stat().st_size)

    def test_inspect_lists_tensors_with_the_digests_that_their_writer_has(self):
        oracle = json.loads((SAFETENSORS.parent / "dtypes.oracle.json").read_text())
        report = self.json_of(0, "inspect", SAFETENSORS, "--digest", "sha256")
        self.assertEqual(len(report["tensors"]), len(oracle.get("tensors", oracle)))
        for tensor in report["tensors"]:
            self.assertRegex(tensor["digest"], "^sha256:[0-9a-f]{64}$")
            self.assertEqual(set(tensor) - {"alias_of", "absent"},
                             {"path", "dtype", "shape", "bytes", "component", "digest"})

    def test_init_writes_a_plan_that_doctor_understands_and_never_overwrites(self):
        plan = self.folder / "plan.toml"
        self.assertEqual(run("init", plan, "--train", "true", "{run_dir}").returncode, 0)
        refused = run("init", plan)
        self.assertEqual(refused.returncode, 64)
        self.assertIn(f"{self.folder}/plan-2.toml", refused.stderr)
        report = self.json_of(0, "doctor", plan, "--dir", self.folder)
        self.assertIn("plan.train", [check["id"] for check in report["checks"]])
        self.assertEqual(run("init", self.folder / "b.toml", "--train", "no-such-program-here", "{run_dir}").returncode, 0)
        self.assertEqual(run("doctor", self.folder / "b.toml").returncode, 1)

    def test_init_says_what_it_wrote_as_json(self):
        plan = self.folder / "plan.toml"
        report = self.json_of(0, "init", plan)
        self.assertEqual((report["schema"], report["path"], report["mistake"]), ("ckptverify.init/1", str(plan), ""))
        self.assertEqual(report["plan"], plan.read_text())
        self.assertEqual(self.json_of(64, "init", plan)["error"]["kind"], "usage")

    def test_a_program_that_cannot_be_started_is_told_before_anything_starts(self):
        plan, out = self.folder / "plan.toml", self.folder / "out"
        self.assertEqual(run("init", plan).returncode, 0)
        done = run("run", plan, "--out", out)
        self.assertEqual((done.returncode, done.stdout), (66, ""))
        self.assertEqual(done.stderr, f"ckptverify: {plan}: train: {self.folder}/trainer: no such program\n")
        plan.write_text(plan.read_text().replace("{plan_dir}/trainer", "./trainer"))
        (self.folder / "trainer").symlink_to("/bin/true")
        done = run("run", plan, "--out", out)
        self.assertEqual((done.returncode, done.stdout), (64, ""))
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("begin it with {plan_dir}", done.stderr)
        self.assertFalse(out.exists())
        checks = {check["id"]: check for check in self.json_of(1, "doctor", plan, "--dir", self.folder)["checks"]}
        self.assertEqual(checks["plan.train"]["status"], "fail")
        self.assertIn("begin it with {plan_dir}", checks["plan.train"]["message"])
        written = run("init", self.folder / "b.toml", "--train", "./trainer", "{run_dir}")
        self.assertEqual(written.returncode, 1)
        self.assertIn("begin it with {plan_dir}", written.stdout)

    def test_doctor_warns_of_a_file_that_no_phase_will_find(self):
        plan = self.folder / "plan.toml"
        (self.folder / "train.py").write_text("")
        self.assertEqual(run("init", plan, "--train", "true", "train.py", "{run_dir}").returncode, 0)
        report = json.loads(run("doctor", plan, "--json").stdout)
        check = next(check for check in report["checks"] if check["id"] == "plan.train")
        self.assertEqual(check["status"], "warn")
        self.assertIn("train.py is relative", check["message"])

    def test_a_setting_takes_one_value_and_leaves_the_plan_alone(self):
        for command in ("run", "doctor"):
            done = run(command, "--set", "a=b", "--set", "c=d", self.folder / "absent.toml")
            self.assertEqual(done.returncode, 66, done.stderr)
            self.assertIn("absent.toml", done.stderr)

    def test_doctor_warns_of_a_path_that_all_saves_share(self):
        plan = self.folder / "plan.toml"
        self.assertEqual(run("init", plan, "--train", "true", "{run_dir}").returncode, 0)
        for path, status in (("step-{step}", "pass"), ("latest", "warn")):
            text = re.sub(r'(?m)^path = .*$', f'path = "{{run_dir}}/{path}"', plan.read_text())
            plan.write_text(text)
            report = self.json_of(0, "doctor", plan, "--dir", self.folder)
            check = next(check for check in report["checks"] if check["id"] == "plan.checkpoints")
            self.assertEqual(check["status"], status)
        self.assertIn("without {step}", check["message"])

    def test_help_names_choices_and_defaults_in_words(self):
        text = run("run", "--help").stdout
        self.assertRegex(text, r"--level quick\|standard\|deep\s+How much .* \(default: standard\)")
        self.assertRegex(text, r"--threads N\s")
        for command in ("run", "check", "inspect", "hash", "diff", "init", "doctor", "formats"):
            self.assertNotRegex(run(command, "--help").stdout, "UINT|FLOAT|:{|in \\[", command)

    def test_run_without_out_takes_the_next_free_directory(self):
        plan = FILES.parent / "odd_trainer" / "plan.toml"
        tool = pathlib.Path(TOOL).resolve()
        (self.folder / "ckptverify-out").mkdir()
        (self.folder / "ckptverify-out" / "kept").write_text("mine")
        command = [tool, "run", plan, "--set", "behave=crash-in-training", "--json"]
        for name in ("ckptverify-out-2", "ckptverify-out-3"):
            done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(json.loads(done.stdout)["output_directory"], str(self.folder.resolve() / name))
        self.assertEqual(os.listdir(self.folder / "ckptverify-out"), ["kept"])

    def test_a_required_component_that_is_absent_is_named_as_that(self):
        done = run("check", SAFETENSORS, "--require", "optimizer")
        self.assertEqual(done.returncode, 1)
        self.assertIn("The required component optimizer is absent;", done.stdout)
        self.assertIn("of 1 file\n", done.stdout)

    def test_the_tool_maps_neither_libtorch_nor_hdf5_nor_python(self):
        libraries = subprocess.run(["ldd", TOOL], capture_output=True, text=True, check=True).stdout
        for name in ("torch", "c10", "hdf5", "python"):
            self.assertNotIn(name, libraries)

    def test_run_refuses_a_directory_that_holds_something(self):
        (self.folder / "kept").write_text("mine")
        plan = FILES.parent / "odd_trainer" / "plan.toml"
        self.assertEqual(run("run", plan, "--out", self.folder).returncode, 64)
        self.assertEqual(os.listdir(self.folder), ["kept"])

    def test_mistakes_on_the_command_line_are_told_as_json_too(self):
        cases = (("run", "--json"), ("check", SAFETENSORS, "--bogus", "--json"), ("diff", "a", "--json"),
                 ("inspect", "x", "--digest", "md5", "--json"), ("doctor", "a", "b", "--json"),
                 ("formats", "x", "--json"), ("init", "--bogus", "--json"), ("diff", "a", "b", "--rtol", "z", "--json"))
        for arguments in cases:
            done = run(*arguments)
            self.assertEqual(done.returncode, 64, arguments)
            self.assertRegex(done.stderr, f"^ckptverify: {arguments[0]}: ")
            told = json.loads(done.stdout)
            self.assertEqual(told["schema"], f"ckptverify.{arguments[0]}/1")
            self.assertEqual((told["error"]["kind"], told["error"]["exit_code"]), ("usage", 64))

    def test_a_command_that_does_not_exist_is_named(self):
        done = run("bogus")
        self.assertEqual((done.returncode, done.stdout), (64, ""))
        self.assertIn("ckptverify: found 'bogus', expected a command", done.stderr)


if __name__ == "__main__":
    unittest.main()
