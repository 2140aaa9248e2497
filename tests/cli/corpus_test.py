"""`check` on every checkpoint of fixtures/files: corpus_test.py PATH_OF_TOOL [--only TEXT]

A bad one gives exactly the findings that its line of corpus.json expects, a good one neither a fail nor an
inconclusive one unless a line says so. No bad file goes without a line, no line without a file.
"""

import argparse
import concurrent.futures
import pathlib
import resource
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "generate"))
import corpus  # noqa: E402

WORKERS = 2
MEMORY_MAX = 512 << 20  # bytes that a check of any file under 1 MB may take


def parted(tool, path, line):
    """Sentences on where the tool and the line part; a good file's line expects nothing."""
    try:
        return corpus.disagreements(corpus.checked(tool, path), line)
    except (AssertionError, ValueError, OSError, corpus.subprocess.TimeoutExpired) as wrong:
        return [str(wrong)]


def shape_of(room):
    """Sentences on files without lines and lines without files or with something missing."""
    lines, bad = corpus.lines(room), room / "bad"
    if bad.is_dir() and not (room / "corpus.json").exists():
        yield "has bad files and no corpus.json"
    paths = [line["path"] for line in lines]
    for line in lines:
        yield from (f"{line['path']}: no '{key}'" for key in ("why", "made") if not line.get(key))
        if not (room / line["path"]).exists():
            yield f"{line['path']}: has a line and does not exist"
        if line["path"].startswith("bad/") and not line["findings"]:
            yield f"{line['path']}: a bad file whose line expects no finding"
    yield from (f"{path}: has more than one line" for path in sorted(set(paths)) if paths.count(path) > 1)
    covered = [room / path for path in paths]
    for path in sorted(bad.rglob("*")) if bad.is_dir() else []:
        if path.is_file() and path.name != "README.md" and not any(
                unit == path or unit in path.parents for unit in covered):
            yield f"{path.relative_to(room)}: has no line in corpus.json"


def tasks(room):
    """(path, line) of every checkpoint of a format."""
    lines = {room / line["path"]: line for line in corpus.lines(room)}
    yield from ((path, line) for path, line in lines.items() if path.exists())
    for path in corpus.good_units(room / "good") if (room / "good").is_dir() else []:
        if path not in lines:
            yield path, {"path": str(path.relative_to(room)), "verdict": "pass", "findings": []}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--only", default="", help="paths that contain this text")
    arguments = parser.parse_args()
    rooms = [path for path in sorted(corpus.FILES.iterdir()) if path.is_dir()]
    wrong = [f"{room.name}: {text}" for room in rooms for text in shape_of(room)]
    work = [task for room in rooms for task in tasks(room) if arguments.only in str(task[0])]
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        said = pool.map(lambda task: parted(arguments.tool, *task), work)
        for (path, line), sentences in zip(work, said):
            name = f"{path.relative_to(corpus.FILES)} ({line.get('why', 'good')})"
            wrong += ["\n    ".join([name, *sentences])] * bool(sentences)
    for room in rooms:
        own = [path.relative_to(room).parts[0] for path, _ in work if room in path.parents]
        print(f"{room.name}: {own.count('bad')} bad, {own.count('good')} good")
    bad = sum("bad" in path.relative_to(corpus.FILES).parts[1:2] for path, _ in work)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(f"{bad} bad and {len(work) - bad} good checkpoints, {memory >> 20} MiB at most")
    if memory > MEMORY_MAX:
        wrong.append(f"a check took {memory} bytes of memory, expected at most {MEMORY_MAX}")
    if not work:
        wrong.append("no checkpoint was found: nothing was tested")
    sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
    main()
