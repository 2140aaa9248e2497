"""Speed as ratios against a peer in the same run: ratios.py BUILD_FOLDER PLAN

Each row runs ours and the peer alternately and prints the median of their ratios beside its budget. Exits 1 if a
budget is missed. Sizes are bytes, times seconds.
"""

import json
import os
import pathlib
import resource
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

import make_dcp

BUILD, PLAN = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
TOOL = str(BUILD / "ckptverify")
ROUNDS = 5
SIZE = 16 * (119 << 20)  # 2 GB


def seconds(command):
    """Wall and processor seconds of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measure(ours, peer, clock="wall"):
    """How many times as fast as the peer we are: the median of the ratios of neighbouring runs, so that a drift
    of the machine hits both; one round unmeasured fills the page cache. A busy machine stretches wall time, so
    that one thread against one thread is measured in processor time."""
    which = 0 if clock == "wall" else 1
    seconds(ours), seconds(peer)
    pairs = [(seconds(ours)[which], seconds(peer)[which]) for _ in range(ROUNDS)]
    mine, theirs = (statistics.median(pair[i] for pair in pairs) for i in (0, 1))
    print(f"        {mine:.3f} s against {theirs:.3f} s, {clock} time, {ROUNDS} pairs; load {os.getloadavg()[0]:.1f}")
    return statistics.median(theirs / mine for mine, theirs in pairs)


def peak_mib(command):
    """Peak resident memory of one run, without pages of files that others share with it."""
    done = subprocess.run(["/usr/bin/env", "python3", "-c", PEAK, *command], check=True, capture_output=True, text=True)
    return int(done.stdout.split()[-1]) / 1024


PEAK = ("import resource,subprocess,sys;subprocess.run(sys.argv[1:],check=True,stdout=subprocess.DEVNULL);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")


def tensor_block():
    """Random bytes that are finite float32 numbers."""
    return bytes(byte & 0x3F for byte in os.urandom(1 << 20))


def write_safetensors(path, size=SIZE, data=True):
    """16 float32 tensors; without data, a hole of that size."""
    each = size // 16
    header = {f"layer.{i}.weight": {"dtype": "F32", "shape": [each // 4],
                                    "data_offsets": [i * each, (i + 1) * each]} for i in range(16)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    block = tensor_block()
    with open(path, "wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        if not data:
            stream.truncate(8 + len(text) + size)
            return
        for _ in range(size >> 20):
            stream.write(block)


def pickle_of_tensors(count, elements):
    """What torch.save writes for {"layer.0.weight": tensor, ...}: a pickle of protocol 2 by hand, so that no
    framework is needed to make the file. Opcodes are those of Python's pickletools."""
    def unicode(text):
        return b"X" + struct.pack("<I", len(text)) + text.encode()

    def integer(number):
        return b"J" + struct.pack("<i", number)
    out = b"\x80\x02}("
    for i in range(count):
        out += unicode(f"layer.{i}.weight") + b"ctorch._utils\n_rebuild_tensor_v2\n("
        out += b"(" + unicode("storage") + b"ctorch\nFloatStorage\n" + unicode(str(i)) + unicode("cpu")
        out += integer(elements) + b"tQ" + integer(0) + integer(elements) + b"\x85" + integer(1) + b"\x85"
        out += b"\x89ccollections\nOrderedDict\n)RtR"
    return out + b"u."


def write_torch(path, size=SIZE):
    """A .pt of 16 float32 tensors, its records stored and aligned to 64 bytes, with CRC-32, as torch.save does."""
    each = size // 16
    block = tensor_block()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        def write(name, chunks, length):
            info = zipfile.ZipInfo(f"model/{name}")
            # The padding is an extra field "FB", as PyTorch's writer makes it.
            start = archive.fp.tell() + 30 + len(info.filename) + 4
            padding = -start % 64
            info.extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
            info.file_size = length
            with archive.open(info, "w") as stream:
                for chunk in chunks:
                    stream.write(chunk)
            info.extra = b""  # the padding stands in the local header alone
        write("data.pkl", [pickle_of_tensors(16, each // 4)], 0)
        write("byteorder", [b"little"], 6)
        for i in range(16):
            write(f"data/{i}", (block for _ in range(each >> 20)), each)
        write("version", [b"3\n"], 2)


def row(name, ratio, budget, better):
    met = ratio >= budget if better == "more" else ratio <= budget
    sign = "≥" if better == "more" else "≤"
    print(f"{'ok ' if met else 'MISSED'}  {name}: {ratio:.2f}, budget {sign} {budget}")
    return met


def torch_python():
    """A Python that has PyTorch, if one is named or first in PATH."""
    for python in (os.environ.get("CKPTVERIFY_BENCH_PYTHON"), shutil.which("python3")):
        if python and subprocess.run([python, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode == 0:
            return python
    return None


# Opens each item of a distributed checkpoint as the archive that it is, by Python's zipfile: what reading the chunks
# takes where nothing is proven of them but their checksums.
READ_ITEMS = """
import io, pathlib, sys, zipfile
for file in sorted(pathlib.Path(sys.argv[1]).glob("*.distcp")):
    data, size = file.read_bytes(), int(sys.argv[2])
    for begin in range(0, len(data), size):
        assert zipfile.ZipFile(io.BytesIO(data[begin:begin + size])).testzip() is None
"""


def distributed_rows(folder):
    """A save of 100,000 chunks and one of a quarter: what they cost, and that four times the chunks cost four times
    as much, whether one file describes them or each rank its own."""
    results, item_size = [], str(len(make_dcp.item()))
    for name, tensors, ranks in (("chunks of 1,000 tensors", 1000, 0), ("chunks of one tensor by 8 ranks", 1, 8)):
        whole, quarter = folder / "whole", folder / "quarter"
        make_dcp.make(whole, 100_000, 8, tensors, ranks)
        make_dcp.make(quarter, 25_000, 8, min(tensors, 250), ranks)
        ratio = measure([TOOL, "check", str(quarter)], [TOOL, "check", str(whole)], "processor")
        results.append(row(f"check of 100,000 {name}, times 25,000", ratio, 5.5, "less"))
        if ranks == 0:
            items = [sys.executable, "-c", READ_ITEMS, str(whole), item_size]
            ratio = measure([TOOL, "check", "--threads", "1", str(whole)], items, "processor")
            results.append(row("check of 100,000 chunks, speed against Python's zipfile", ratio, 2, "more"))
            inspect = [TOOL, "inspect", str(whole)]
            best = min(seconds(inspect)[0] for _ in range(ROUNDS))
            results.append(row("inspect of 100,000 chunks, seconds", best, 1, "less"))
            results.append(row("inspect of 100,000 chunks, peak MiB", peak_mib(inspect), 200, "less"))
        shutil.rmtree(whole), shutil.rmtree(quarter)
    return results


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ckptverify-bench-"))
    results = []
    try:
        model, copy, sparse = (folder / name for name in ("model.safetensors", "copy.safetensors", "sparse.safetensors"))
        write_safetensors(model)
        xxhsum = ["xxhsum", "-H2", str(model)]
        one = [TOOL, "hash", "--threads", "1", str(model)]
        results.append(row("hash, 1 thread, speed against xxhsum -H2", measure(one, xxhsum, "processor"), 1.0, "more"))
        two = [TOOL, "hash", "--threads", "2", str(model)]
        results.append(row("hash, 2 threads, speed against xxhsum -H2", measure(two, xxhsum), 1.8, "more"))

        shutil.copy(model, copy)
        both = ["sh", "-c", f"cat {model} >/dev/null; cat {copy} >/dev/null"]
        ratio = 1 / measure([TOOL, "diff", "--threads", "1", str(model), str(copy)], both, "processor")
        results.append(row("diff, 1 thread, times reading both with cat", ratio, 1.3, "less"))
        copy.unlink()

        archive = folder / "model.pt"
        write_torch(archive)
        model.unlink()
        check = [TOOL, "check", str(archive)]
        results.append(row("check, speed against unzip -t", measure(check, ["unzip", "-tq", str(archive)]), 20, "more"))
        torch = torch_python()
        if torch is None:
            print("        no Python with PyTorch (CKPTVERIFY_BENCH_PYTHON): torch.load is not measured")
        else:
            load = [torch, "-c", f"import torch; torch.load({str(archive)!r}, weights_only=True)"]
            start = [torch, "-c", "import torch"]
            ratio = (statistics.median(seconds(load)[0] for _ in range(ROUNDS))
                     - statistics.median(seconds(start)[0] for _ in range(ROUNDS)))
            ratio /= statistics.median(seconds(check)[0] for _ in range(ROUNDS))
            results.append(row("check, speed against torch.load without its start", ratio, 4, "more"))
        archive.unlink()

        write_safetensors(sparse, 50 << 30, data=False)
        inspect = [TOOL, "inspect", str(sparse)]
        results.append(row("inspect of 50 GiB, seconds", min(seconds(inspect)[0] for _ in range(ROUNDS)), 1, "less"))
        results.append(row("inspect of 50 GiB, peak MiB", peak_mib(inspect), 200, "less"))
        sparse.unlink()

        results += distributed_rows(folder)
        results.append(row("start, times that of true", 1 / measure([TOOL, "formats"], ["true"]), 20, "less"))

        if (BUILD / "reference_trainer").exists():
            out = folder / "gate"
            subprocess.run([TOOL, "run", PLAN, "--out", str(out)], check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
            timings = json.loads((out / "report.json").read_text())["timings"]
            print(f"        gate: {timings}")
            results.append(row("gate, own time over the trainers'", timings["own_s"] / timings["trainer_s"],
                               0.25, "less"))
    finally:
        shutil.rmtree(folder)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
