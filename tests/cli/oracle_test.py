"""What the tool reads is what the framework reads: oracle_test.py PATH_OF_TOOL [--only TEXT]

For every good checkpoint of fixtures/files that has an oracle (oracle.json in its folder, x.oracle.json or
x.pt.json beside it, written by the framework after loading): each tensor's dtype, shape and the SHA-256 of its
logical bytes, and each plain value, are equal; nothing is missing on either side.

An oracle is {"tensors": {path: {"dtype", "shape", "sha256", "nbytes"}}, "values": {path: value}} with list
indices as [i]. A value "<module.Class>" is an object that the framework does not break down: the tool must
show something there, whatever it is. "covers" lists the path prefixes that the oracle speaks of, where it
does not speak of all; an oracle without "values" speaks of tensors alone.
"""

import argparse
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "generate"))
import corpus  # noqa: E402

WORKERS = 2
# All exceptions: an oracle that holds for another file too, written from the same state.
ORACLES_ELSEWHERE = {
    "torch-zip/good/deflated.pt": "torch-zip/good/shared.pt.json",
    "torch-zip/good/full_nocrc.pt": "torch-zip/good/full.pt.json",
}


def oracle_of(path):
    """The oracle of a good checkpoint, or None."""
    elsewhere = ORACLES_ELSEWHERE.get(str(path.relative_to(corpus.FILES)))
    names = [corpus.FILES / elsewhere] if elsewhere else [
        path.with_name(path.name + ".json"), path.with_name(path.name + ".oracle.json"),
        path.with_name(path.stem + ".oracle.json"), path.with_name("oracle.json")]
    return next((json.loads(name.read_text()) for name in names if name.exists()), None)


def dotted(path):
    """a[0][1].b as the tool writes it: a.0.1.b"""
    return re.sub(r"\[(\d+)\]", r".\1", path).lstrip(".")


def is_opaque(value):
    return isinstance(value, str) and re.fullmatch(r"<[\w.]+>", value) is not None


def same_value(found, wanted):
    if isinstance(found, bool) or isinstance(wanted, bool) or found is None or wanted is None:
        return found is wanted
    if isinstance(found, str) != isinstance(wanted, str):  # beyond 64 bits either side may write text
        return str(found) == str(wanted)
    return found == wanted


def same_tensor(path, found, wanted):
    if found is None:
        return [f"{path}: no such tensor, expected {wanted['dtype']} {wanted['shape']}"]
    said = [f"{path}: {key}: found {found[key]}, expected {wanted[key]}"
            for key in ("dtype", "shape") if found[key] != wanted[key]]
    if "nbytes" in wanted and found["bytes"] != wanted["nbytes"]:
        said.append(f"{path}: bytes: found {found['bytes']}, expected {wanted['nbytes']}")
    if found.get("digest") != "sha256:" + wanted["sha256"]:
        said.append(f"{path}: found {found.get('digest')}, expected sha256:{wanted['sha256']}")
    return said


def compared(report, oracle):
    """Sentences on where the tool's listing and the framework's part."""
    covers = oracle.get("covers")

    def covered(path):
        return covers is None or any(path == prefix or path.startswith(prefix + ".") for prefix in covers)

    tensors = {row["path"]: row for row in report["tensors"] if covered(row["path"])}
    values = {row["path"]: row["value"] for row in report["values"] if covered(row["path"])}
    others = {row["path"] for row in report["opaque"] if covered(row["path"])}
    said, objects = [], []
    for path, wanted in {dotted(p): t for p, t in oracle.get("tensors", {}).items() if covered(dotted(p))}.items():
        if "sha256" not in wanted:
            objects.append(path)
            continue
        said += same_tensor(path, tensors.pop(path, None), wanted)
    for path, wanted in {dotted(p): v for p, v in oracle.get("values", {}).items()
                         if covered(dotted(p))}.items():
        if is_opaque(wanted):
            objects.append(path)
        elif path not in values:
            said.append(f"{path}: no such value, expected {wanted!r}")
        elif not same_value(found := values.pop(path), wanted):
            said.append(f"{path}: found {found!r}, expected {wanted!r}")
    if "values" not in oracle:
        values = {}
    empty = {path for path, value in values.items() if value in ([], {})}  # no framework's oracle lists them
    left = {*tensors, *values, *others}
    for root in objects:
        own = {path for path in left if path == root or path.startswith(root + ".")}
        if not own:
            said.append(f"{root}: an object of the framework of which the tool shows nothing")
        left -= own
    return said + [f"{path}: the tool shows it and the framework does not" for path in sorted(left - empty)]


def parted(tool, path, oracle):
    try:
        done = subprocess.run([tool, "inspect", "--json", "--digest", "sha256", path], capture_output=True,
                              timeout=corpus.SECONDS_MAX)
        if done.returncode not in (0, 2):
            return [f"exit {done.returncode}: {done.stderr.decode(errors='replace').strip()[-2000:]}"]
        report = json.loads(done.stdout)
        if "tensors" not in report:
            return [f"not read: {report}"]
        return compared(report, oracle)
    except (ValueError, KeyError, subprocess.TimeoutExpired) as wrong:
        return [repr(wrong)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--only", default="", help="paths that contain this text")
    arguments = parser.parse_args()
    units = [path for room in sorted(corpus.FILES.iterdir()) if (room / "good").is_dir()
             for path in corpus.good_units(room / "good") if arguments.only in str(path)]
    work = [(path, oracle_of(path)) for path in units]
    for path, oracle in work:
        if oracle is None:
            print(f"no oracle: {path.relative_to(corpus.FILES)}")
    work = [(path, oracle) for path, oracle in work if oracle is not None]
    wrong = []
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        said = pool.map(lambda task: parted(arguments.tool, *task), work)
        for (path, oracle), sentences in zip(work, said):
            if sentences:
                wrong.append("\n    ".join([str(path.relative_to(corpus.FILES)), *sentences[:40]]))
    tensors = sum(len(oracle.get("tensors", {})) for _, oracle in work)
    values = sum(len(oracle.get("values", {})) for _, oracle in work)
    print(f"{len(work)} checkpoints, {tensors} tensors and {values} values as their frameworks read them")
    if not work:
        wrong.append("no oracle was found: nothing was tested")
    sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
    main()
