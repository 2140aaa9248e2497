"""A distributed checkpoint of many small chunks, without PyTorch: make_dcp.py FOLDER [CHUNKS [FILES [TENSORS [RANKS]]]].

What inspect and check of the metadata of a save of thousands of ranks cost: by default 100,000 chunks of 1,000
tensors in 8 files. With RANKS the metadata is in a file a rank, as ranks leave it that save without talking to each
other; each describes its own chunks. Classes stand in for PyTorch's under their names; the items are archives as torch.save lays
them out, all with the same elements.
"""

import collections
import io
import pathlib
import pickle
import sys
import types
import zipfile

SHAPE = (4, 4)


def stand_in(module, name, base=object):
    """A class that pickle writes as module.name."""
    parts = module.split(".")
    for count in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:count]), types.ModuleType(".".join(parts[:count])))
    made = type(name, (base,), {"__module__": module, "__qualname__": name})
    setattr(sys.modules[module], name, made)
    return made


METADATA = "torch.distributed.checkpoint.metadata"
Metadata, Tensor, Chunk, Index, Meta = (stand_in(METADATA, name) for name in (
    "Metadata", "TensorStorageMetadata", "ChunkStorageMetadata", "MetadataIndex", "StorageMeta"))
Properties = stand_in(METADATA, "TensorProperties")
Info = stand_in("torch.distributed.checkpoint.filesystem", "_StorageInfo")
Size = stand_in("torch", "Size", tuple)
Size.__reduce__ = lambda self: (Size, (tuple(self),))
Encoding = stand_in(METADATA, "_MEM_FORMAT_ENCODING", int)
Encoding.__reduce__ = lambda self: (Encoding, (int(self),))


class Named:
    """A global of a name: a dtype, a function."""

    def __init__(self, module, name):
        stand_in(module, name)
        self.path = (module, name)


def made(kind, **attributes):
    thing = kind()
    thing.__dict__.update(attributes)
    return thing


class Pickler(pickle._Pickler):
    """Python's own, which a class may tell how it is written."""

    def save_named(self, named):
        self.save_global(getattr(sys.modules[named.path[0]], named.path[1]), name=named.path[1])

    dispatch = dict(pickle._Pickler.dispatch)
    dispatch[Named] = save_named


class Storage:
    pass


def item():
    """One chunk as torch.save writes it."""
    float_storage = stand_in("torch", "FloatStorage")
    rebuild = stand_in("torch._utils", "_rebuild_tensor_v2")

    class Rebuilt:
        def __reduce__(self):
            return rebuild, (Storage(), 0, SHAPE, (SHAPE[1], 1), False, collections.OrderedDict())

    class ItemPickler(pickle._Pickler):
        def persistent_id(self, thing):
            if isinstance(thing, Storage):
                return ("storage", float_storage, "0", "cpu", SHAPE[0] * SHAPE[1])
            return None

    objects = io.BytesIO()
    ItemPickler(objects, 2).dump(Rebuilt())
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as records:
        for name, data in (("data.pkl", objects.getvalue()), ("byteorder", b"little"),
                           ("data/0", bytes(range(4 * SHAPE[0] * SHAPE[1]))), ("version", b"3\n")):
            records.writestr(zipfile.ZipInfo("archive/" + name), data)
    return archive.getvalue()


def properties():
    dtype, strided = stand_in("torch", "float32"), stand_in("torch", "strided")
    kind = made(Properties)
    Properties.__getstate__ = lambda self: (dtype, strided, False, Encoding(0), False)
    return kind


class Description:
    """What one metadata file tells: its tensors, where their chunks lie, and the planner's keys."""

    def __init__(self):
        self.boxes, self.stored, self.keys = {}, {}, {}

    def add(self, name, place, info):
        boxes = self.boxes.setdefault(name, [])
        self.stored[made(Index, fqn=name, index=len(boxes), offset=place)] = info
        boxes.append(made(Chunk, offsets=place, sizes=Size(SHAPE)))
        self.keys[name] = ("model", name.removeprefix("model."))

    def write(self, path, kind, rows):
        described = {name: made(Tensor, properties=kind, size=Size((rows, SHAPE[1])), chunks=boxes)
                     for name, boxes in self.boxes.items()}
        metadata = made(Metadata, state_dict_metadata=described, planner_data=self.keys, storage_data=self.stored,
                        storage_meta=None, version="1.0.0")
        with open(path, "wb") as out:
            pickle.dump(metadata, out)


def make(folder, chunks=100_000, files=8, tensors=1000, ranks=0):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = min(tensors, chunks)
    per_tensor, one, ends = chunks // tensors, item(), [0] * files
    descriptions = [Description() for _ in range(max(1, ranks))]
    for t in range(tensors):
        for c in range(per_tensor):
            file = (t * per_tensor + c) % files
            info = made(Info, relative_path=f"__{file}_0.distcp", offset=ends[file], length=len(one))
            ends[file] += len(one)
            descriptions[c % len(descriptions)].add(f"model.layers.{t}.weight", Size((c * SHAPE[0], 0)), info)
    for file in range(files):
        (folder / f"__{file}_0.distcp").write_bytes(one * (ends[file] // len(one)))
    for rank, description in enumerate(descriptions):
        name = f"__{rank}.metadata" if ranks else ".metadata"
        description.write(folder / name, properties(), per_tensor * SHAPE[0])


if __name__ == "__main__":
    make(sys.argv[1], *map(int, sys.argv[2:]))
