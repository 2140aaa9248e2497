"""Runs one gate and holds its verdict, first cause and exit code against what is expected.

gate_test.py TOOL PLAN --verdict pass|fail|inconclusive [--cause ID] [--set NAME=VALUE ...]
"""

import argparse
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile

EXIT_CODES = {"pass": 0, "fail": 1, "inconclusive": 2}


def left_behind(marker):
    """Processes whose environment still carries the marker of this test."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as stream:
                if marker in stream.read() and int(pid) != os.getpid():
                    found.append(pid)
        except OSError:
            pass
    return found


def fifos(directory):
    """What hangs whoever reads all files of the output directory."""
    for folder, _, names in os.walk(directory):
        for path in (os.path.join(folder, name) for name in names):
            if stat.S_ISFIFO(os.lstat(path).st_mode):
                yield path


def complaints(report, code, arguments):
    if report["verdict"] != arguments.verdict:
        yield f"verdict: found {report['verdict']}, expected {arguments.verdict}"
    if code != EXIT_CODES[arguments.verdict]:
        yield f"exit code: found {code}, expected {EXIT_CODES[arguments.verdict]}"
    causes = [cause["id"] for cause in report["causes"]]
    if arguments.cause and causes[:1] != [arguments.cause]:
        yield f"causes: found {causes}, expected {arguments.cause} first"
    if arguments.verdict == "pass" and causes:
        yield f"causes: found {causes}, expected none"
    if arguments.verdict == "pass" and len(report["proven"]) == 0:
        yield "a pass that proves nothing"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("plan")
    parser.add_argument("--verdict", required=True, choices=EXIT_CODES)
    parser.add_argument("--cause")
    parser.add_argument("--set", action="append", default=[])
    arguments = parser.parse_args()

    out = tempfile.mkdtemp(prefix="ckptverify-gate-")
    # Not CKPTVERIFY_*, which the tool takes out of trainers' environments.
    marker = f"GATE_TEST_MARKER={os.path.basename(out)}"
    name, value = marker.split("=")
    command = [arguments.tool, "run", arguments.plan, "--out", out + "/report"]
    for setting in arguments.set:
        command += ["--set", setting]
    run = subprocess.run(command, env={**os.environ, name: value}, capture_output=True, text=True)
    try:
        with open(out + "/report/report.json") as stream:
            report = json.load(stream)
        wrong = list(complaints(report, run.returncode, arguments))
    except (OSError, ValueError, KeyError) as error:
        wrong = [f"no usable report: {error!r}"]
    # A trainer's own FIFO is among the fixtures: it lies in the run's directory.
    wrong += [f"left behind: FIFO {path}" for path in fifos(out + "/report/events")]
    wrong += [f"left behind: process {pid}" for pid in left_behind(marker.encode())]
    print(run.stdout)
    if wrong:
        print(run.stderr, *wrong, f"kept: {out}", f"repeat: {' '.join(command)}", sep="\n")
        return 1
    shutil.rmtree(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
