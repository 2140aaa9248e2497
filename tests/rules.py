"""The rules of the house, checked: who may include whom, and which file owns which external library.

Run from anywhere; prints every broken rule as file:line and exits 1 if there is one.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Room of a file -> rooms it may include. A room is the longest prefix in this table.
MAY_INCLUDE = {
    "include/ckptverify/": {"include/ckptverify/"},
    "src/": {"include/ckptverify/"},
    "src/report/": {"include/ckptverify/", "src/report/"},
    "src/cli/": {"include/ckptverify/", "src/report/", "src/cli/", "harness/", "formats/formats.h",
                 "formats/collection.h", "formats/collection_items.h",
                 "formats/container/hdf5_probe.h"},
    "formats/container/": {"include/ckptverify/", "formats/container/", "formats/encoding/"},
    "formats/encoding/": {"include/ckptverify/", "formats/encoding/"},
    "formats/": {"include/ckptverify/", "formats/container/", "formats/encoding/"},
    "harness/": {"include/ckptverify/", "harness/"},
    "fixtures/": {"include/ckptverify/", "fixtures/"},
}

# External library -> the one file, pair or folder of the tool that includes it.
OWNER = {
    r"CLI/": "src/cli/",
    r"boost/tokenizer": "src/cli/init.",
    r"boost/(?!tokenizer)": "harness/launch.",
    r"toml\+\+/": "harness/toml_file.",
    r"nlohmann/": "src/json.cc",
    r"xxhash": "src/fingerprint.cc",
    r"zstd": "formats/encoding/zstd.",
    r"libdeflate": "formats/encoding/deflate.",
    r"hdf5|H5\w+\.h": "formats/container/hdf5_",
    r"torch/|c10/|ATen/": "nowhere in the tool",
}
TOOL = ("include/", "src/", "formats/", "harness/")


def room_of(path):
    rooms = [room for room in MAY_INCLUDE if path.startswith(room)]
    return max(rooms, key=len, default=None)


def allowed(path, target):
    room = room_of(path)
    if path == "formats/formats.cc" and target.startswith("formats/"):
        return True  # the table names every format
    own_header = re.sub(r"\.cc$", ".h", path)
    if target == own_header:
        return True
    if room == "src/" and re.fullmatch(r"src/\w+\.h", target):
        return True  # the core's own parts (src/parallel.h); nobody else sees them
    if room == "formats/" and target.startswith("formats/") and target.count("/") == 1:
        # A format split by noun includes its own parts (hdf5.cc, hdf5_types.h), never another format.
        stem = Path(path).stem
        return Path(target).stem.startswith(stem.split("_")[0] + "_")
    return any(target.startswith(prefix) for prefix in MAY_INCLUDE[room])


def resolve(include):
    """The repository path that an include names, or nothing for a system or library header."""
    for candidate in (include, "include/" + include):
        if (ROOT / candidate).is_file():
            return candidate
    return None


def check(path):
    for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if not match:
            continue
        quote, include = match.groups()
        target = resolve(include) if quote == '"' else None
        if quote == '"' and target is None:
            yield number, f'"{include}" is no file of the repository, seen from its root'
        elif target and room_of(path) and not allowed(path, target):
            yield number, f"may not include {target}"
        elif not target and path.startswith("include/ckptverify/") and ("/" in include and not
                include.startswith("sys/") or re.search(r"xxhash|zstd|hdf5", include)):
            yield number, f"public headers include the standard library and each other, not <{include}>"
        elif not target and path.startswith(TOOL):
            for library, owner in OWNER.items():
                if re.match(library, include) and not path.startswith(owner):
                    yield number, f"<{include}> belongs to {owner}"


def main():
    files = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.h", "*.cc"],
                           cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    broken = [f"{path}:{number}: {what}" for path in files if (ROOT / path).exists() for number, what in check(path)]
    print("\n".join(broken) or f"rules: {len(files)} files, none breaks a rule")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
