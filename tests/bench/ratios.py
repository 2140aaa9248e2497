"""Speed as ratios against a peer in the same run: ratios.py BUILD_FOLDER PLAN

Each row runs ours and the peer alternately, takes the median of each and prints their ratio beside its
budget. Exits 1 if a budget is missed. Sizes are bytes, times seconds.
"""

import json
import os
import pathlib
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

BUILD, PLAN = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
TOOL = str(BUILD / "ckptverify")
ROUNDS = 5
SIZE = 1 << 30


def seconds(command):
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin


def medians(ours, peer):
    """Alternating, so that a drift of the machine hits both; one round unmeasured fills the page cache."""
    seconds(ours), seconds(peer)
    pairs = [(seconds(ours), seconds(peer)) for _ in range(ROUNDS)]
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)


def write_safetensors(path):
    """16 float32 tensors of random bytes that are finite numbers."""
    each = SIZE // 16
    header = {f"layer.{i}.weight": {"dtype": "F32", "shape": [each // 4],
                                    "data_offsets": [i * each, (i + 1) * each]} for i in range(16)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    block = bytes(byte & 0x3F for byte in os.urandom(1 << 20))
    with open(path, "wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        for _ in range(SIZE >> 20):
            stream.write(block)


def row(name, ratio, budget, better):
    met = ratio >= budget if better == "more" else ratio <= budget
    sign = "≥" if better == "more" else "≤"
    print(f"{'ok ' if met else 'MISSED'}  {name}: {ratio:.2f}, budget {sign} {budget}")
    return met


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ckptverify-bench-"))
    results = []
    try:
        model = folder / "model.safetensors"
        write_safetensors(model)
        ours, peer = medians([TOOL, "hash", "--threads", "1", str(model)], ["xxhsum", "-H2", str(model)])
        results.append(row("hash, 1 thread, speed against xxhsum -H2", peer / ours, 0.5, "more"))
        archive = folder / "stored.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as stream:
            stream.write(model, "archive/data/0")
        ours, peer = medians([TOOL, "check", str(model)], ["unzip", "-tq", str(archive)])
        results.append(row("check, speed against unzip -t of as many bytes", peer / ours, 4, "more"))

        ours, peer = medians([TOOL, "formats"], ["true"])
        print(f"        start of the tool: {ours * 1000:.1f} ms; of true: {peer * 1000:.1f} ms")
        results.append(row("start, times that of true", ours / peer, 20, "less"))

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
