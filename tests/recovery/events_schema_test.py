"""The odd trainer's events against docs/events.schema.json, and events that the schema must refuse.

Usage: events_schema_test.py SCHEMA ODD_TRAINER
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import jsonschema

GOOD = {"schema": "ckptverify.event/1", "seq": 0, "pid": 7, "rank": 0, "world": 1, "t_mono_ns": 1,
        "role": "trainer", "type": "step", "step": 1}
BAD = [
    {"schema": "ckptverify.event/2"},
    {"type": "leap"},
    {"role": "spectator"},
    {"seq": -1},
    {"step": "1"},
    {"loss": "NaN"},
    {"batch": "0123"},
    {"type": "eval"},
    {"type": "state", "at": "save", "captured_at": "save_entry"},
    {"type": "state", "at": "save", "captured_at": "save_entry", "side": "../elsewhere"},
    {"type": "state", "at": "never", "captured_at": "save_entry", "components": {}},
    {"type": "state", "at": "save", "captured_at": "save_entry", "components": {}, "side": "a.state"},
    {"type": "state", "at": "save", "captured_at": "save_entry", "components": {
        "model": {"digest": "0" * 32, "entries": [{"path": "w", "digest": "0" * 32, "dtype": "float32"}]}}},
]


def events_of(trainer, directory):
    environment = dict(os.environ, CKPTVERIFY_EVENTS=f"{directory}/{{rank}}-{{pid}}.jsonl")
    for mode in (["train", "--steps", "10"], ["resume", "--checkpoint", f"{directory}/checkpoints/step-5",
                                              "--steps", "10"],
                 ["eval", "--checkpoint", f"{directory}/checkpoints/step-10"]):
        subprocess.run([trainer, *mode, "--run-dir", directory], env=environment, check=True,
                       stdout=subprocess.DEVNULL)
    return [json.loads(line) for file in Path(directory).glob("*.jsonl") for line in file.open()]


def main():
    schema = json.loads(Path(sys.argv[1]).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    with tempfile.TemporaryDirectory() as directory:
        events = events_of(sys.argv[2], directory)
    for event in events:
        validator.validate(event)
    seen = {event["type"] for event in events}
    expected = {"start", "restored", "step", "state", "save_begin", "save_end", "eval", "end"}
    if seen != expected:
        sys.exit(f"types of events: found {sorted(seen)}, expected {sorted(expected)}")
    validator.validate(GOOD)
    accepted = [change for change in BAD if validator.is_valid({**GOOD, **change})]
    if accepted:
        sys.exit(f"accepted, expected to be refused: {accepted}")
    print(f"{len(events)} events valid, {len(BAD)} bad ones refused")


if __name__ == "__main__":
    main()
