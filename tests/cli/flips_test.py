"""Single flipped bits, seen by `check` and by PyTorch: flips_test.py FLIPS_HELPER [PYTHON...] [--count N]

2,000 random bits (a fixed seed) of a full-state torch.save file and of a DCP directory: the tool reports at
least 99.9 % of them, or lists the byte as one that nothing protects. The first PYTHON that imports torch is
asked how many of the first 500 of the same damaged checkpoints PyTorch loads without a word, and both figures
are printed; without one that half is left out by name, in CI it is an error.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import subprocess
import sys

FILES = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "files"
SEED = 20260
COUNT = 2000
PYTORCH_COUNT = 500  # each is a process of its own and takes as long as forty of the tool's
WORKERS = 2
NOTICED_MIN = 0.999
CHECKPOINTS = {  # name: a path below fixtures/files
    "torch.save": FILES / "torch-zip" / "good" / "torch-2.13" / "full_state.pt",
    "DCP": FILES / "dcp" / "good" / "torch-2.13" / "step-4",
}

# Run by a Python with torch, as a child that dies alone: loads the checkpoint with each flip, prints how it went.
PYTORCH = r"""
import io, json, os, resource, shutil, sys, tempfile, warnings
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
warnings.simplefilter("ignore")
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.format_utils import _EmptyStateDictLoadPlanner
from torch.distributed.checkpoint.state_dict_loader import _load_state_dict

path, flips = sys.argv[1], json.load(sys.stdin)
single = os.path.isfile(path)
folder = tempfile.mkdtemp()
place = os.path.join(folder, "checkpoint")
shutil.copy(path, place) if single else shutil.copytree(path, place)

def load():
    if single:
        torch.load(place, map_location="cpu", weights_only=False)
    else:
        state = {}
        _load_state_dict(state, storage_reader=dcp.FileSystemReader(place),
                         planner=_EmptyStateDictLoadPlanner(), no_dist=True)
        if not state:
            raise ValueError("nothing was loaded")

def flip(member, offset, bit):
    with open(place if single else os.path.join(place, member), "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1 << bit]))

load()
for each in flips:
    flip(*each)
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            load()
            os._exit(0)
        except BaseException:
            os._exit(1)
    print("refused" if os.waitpid(child, 0)[1] else "loaded", flush=True)
    flip(*each)
shutil.rmtree(folder)
"""


def flips_of(path, count):
    """[member, offset, bit] of random bits, every bit of the checkpoint as likely as any other."""
    members = [(".", path)] if path.is_file() else sorted(
        (str(file.relative_to(path)), file) for file in path.rglob("*") if file.is_file())
    sizes = [file.stat().st_size for _, file in members]
    source = random.Random(SEED)
    flips = []
    for _ in range(count):
        at = source.randrange(sum(sizes))
        for (member, _), size in zip(members, sizes):
            if at < size:
                break
            at -= size
        flips.append([member, at, source.randrange(8)])
    return flips


def by_tool(helper, path, flips):
    """Each flip's outcome, by WORKERS helpers at once."""
    parts = [flips[begin:begin + len(flips) // WORKERS + 1] for begin in range(0, len(flips), len(flips) // WORKERS + 1)]
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        return [word for words in pool.map(lambda part: by_one_helper(helper, path, part), parts) for word in words]


def by_one_helper(helper, path, flips):
    text = "".join(f"{member} {offset} {bit}\n" for member, offset, bit in flips)
    done = subprocess.run([helper, path], input=text, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def by_pytorch(python, path, flips):
    done = subprocess.run([python, "-c", PYTORCH, path], input=json.dumps(flips), capture_output=True, text=True,
                          timeout=1800)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split()


def with_torch(pythons):
    return next((python for python in pythons if pathlib.Path(python).exists() and subprocess.run(
        [python, "-c", "import torch.distributed.checkpoint"], capture_output=True).returncode == 0), None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("helper")
    parser.add_argument("pythons", nargs="*")
    parser.add_argument("--count", type=int, default=COUNT)
    arguments = parser.parse_args()
    python, wrong = with_torch(arguments.pythons), []
    for name, path in CHECKPOINTS.items():
        flips = flips_of(path, arguments.count)
        tool = by_tool(arguments.helper, path, flips)
        assert len(tool) == len(flips), f"{name}: {len(tool)} answers to {len(flips)} flips"
        noticed = tool.count("reported") + tool.count("unverifiable")
        print(f"{name}: of {len(flips)} flipped bits check reports {tool.count('reported')}, lists "
              f"{tool.count('unverifiable')} as unverifiable, and passes {len(flips) - noticed}")
        missed = [f"{name}: {member} byte {offset} bit {bit}: {how}"
                  for (member, offset, bit), how in zip(flips, tool) if how in ("changed", "silent")]
        print("\n".join(missed[:20]))
        if noticed < NOTICED_MIN * len(flips):
            wrong.append(f"{name}: {noticed} of {len(flips)} noticed, expected {NOTICED_MIN:.1%}")
        if python:
            loaded = by_pytorch(python, path, flips[:PYTORCH_COUNT]).count("loaded")
            print(f"{name}: PyTorch loads {loaded} of the first {PYTORCH_COUNT} without an error")
            if loaded * 2 < PYTORCH_COUNT:
                wrong.append(f"{name}: PyTorch loads {loaded} of {PYTORCH_COUNT}, expected most")
    if python is None:
        print("left out: how many of them PyTorch loads (no Python with torch was given)")
        if os.environ.get("CI"):
            wrong.append("no Python with torch in CI")
    sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
    main()
