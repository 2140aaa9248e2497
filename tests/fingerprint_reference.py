"""Reference implementation of the content fingerprint, version 1 (`ckv1`), and its test vectors.

It was written from the text of the specification alone, without seeing the C++ implementation: that
the two agree on every vector is the evidence that the text says what both do; docs/fingerprint.md tells
where they did not at first. So keep it apart: when
they differ, decide from the text which is wrong, mend the text where it is unclear, and only then
the code. Needs the package `xxhash` (Debian: python3-xxhash).

    fingerprint_reference.py --write FILE   write the vectors
    fingerprint_reference.py --check FILE   recompute each vector of FILE; exit 1 at the first difference
"""
import json
import math
import struct
import sys

import xxhash

LEAF = 1 << 20
ITEM_SIZE = {
    "bool": 1, "uint8": 1, "int8": 1, "uint16": 2, "int16": 2, "uint32": 4, "int32": 4, "uint64": 8,
    "int64": 8, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "complex32": 4,
    "complex64": 8, "complex128": 16, "float8_e4m3fn": 1, "float8_e4m3fnuz": 1, "float8_e5m2": 1,
    "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1, "float4_e2m1fn_x2": 1,
}


def H(data):
    return xxhash.xxh3_128_digest(data)  # seed 0, canonical (big-endian) bytes


def u64(n):
    return struct.pack("<Q", n)


def string(s):
    raw = s.encode("utf-8")
    return u64(len(raw)) + raw


def _tensor(dtype, shape, tail):
    head = string(dtype) + u64(len(shape)) + b"".join(map(u64, shape))
    return H(b"ckv1.tensor\0" + head + u64(ITEM_SIZE[dtype] * math.prod(shape)) + tail)


def tensor(dtype, shape, data):
    """data: the logical bytes."""
    if len(data) != ITEM_SIZE[dtype] * math.prod(shape):
        raise ValueError(f"{dtype} {shape} does not take {len(data)} bytes")
    return _tensor(dtype, shape, b"".join(H(data[i:i + LEAF]) for i in range(0, len(data), LEAF)))


def file_digest(data):
    leaves = [H(data[start:start + LEAF]) for start in range(0, len(data), LEAF)]
    return H(b"ckv1.file\0" + u64(len(data)) + b"".join(leaves))


def absent_tensor(dtype, shape):
    """The byte count is that which the data would have."""
    return _tensor(dtype, shape, b"ckv1.absent\0")


def cbor_head(major, n):
    if n < 24:
        return bytes([major << 5 | n])
    for info, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if n < 1 << 8 * size:
            return bytes([major << 5 | info]) + n.to_bytes(size, "big")
    raise OverflowError(n)


def cbor(v):
    if v is None:
        return b"\xf6"
    if isinstance(v, bool):
        return b"\xf5" if v else b"\xf4"
    if isinstance(v, int):
        major, n = (0, v) if v >= 0 else (1, -1 - v)
        if n < 1 << 64:
            return cbor_head(major, n)
        return cbor_head(6, 2 + major) + cbor(n.to_bytes((n.bit_length() + 7) // 8, "big"))
    if isinstance(v, float):
        if math.isnan(v):
            return b"\xf9\x7e\x00"
        for first, form in ((b"\xf9", ">e"), (b"\xfa", ">f")):
            try:
                raw = struct.pack(form, v)
            except OverflowError:
                continue
            if struct.unpack(form, raw)[0] == v:  # packing keeps the sign of a zero
                return first + raw
        return b"\xfb" + struct.pack(">d", v)
    if isinstance(v, bytes):
        return cbor_head(2, len(v)) + v
    if isinstance(v, str):
        raw = v.encode("utf-8")
        return cbor_head(3, len(raw)) + raw
    if isinstance(v, (list, tuple)) and not v:  # others are walked, also inside a node
        return b"\x80"
    if isinstance(v, dict) and not v:
        return b"\xa0"
    raise TypeError(f"not a value: {v!r}")


def value(v):
    return H(b"ckv1.value\0" + cbor(v))


def _named(items):
    items = sorted((name.encode("utf-8"), digest) for name, digest in items)
    if len({name for name, _ in items}) != len(items):
        raise ValueError("a name is given twice")
    return u64(len(items)) + b"".join(u64(len(n)) + n + digest for n, digest in items)


def node(kind, parts):
    """parts: (name, digest) in any order, as are entries and components below."""
    return H(b"ckv1.node\0" + string(kind) + _named(parts))


def component(entries):
    return H(b"ckv1.component\0" + _named(entries))


def checkpoint(components):
    return H(b"ckv1.checkpoint\0" + _named(components))


# Vectors. An item is a JSON object; ABOUT says its shape.

ABOUT = """\
Vectors of the content fingerprint ckv1, written by tests/fingerprint_reference.py. Each vector is an \
item with a name and its digest. An item has a kind. tensor: dtype, shape, data, which are the logical \
bytes, as hex, or as {mul, add, mod, size}: byte i is (i * mul + add) mod mod, for i from 0 to size - 1. \
absent: dtype, shape. value: type and value; null: null; bool: true or false; int: a decimal string; \
float: the 64-bit IEEE 754 bits as 16 hex digits, the sign bit first; string: its UTF-8 as hex (text \
shows it, for the reader alone); bytes: hex; list and map: always empty, []. \
node: node_kind, parts, which are items that carry a name. component: entries, which are items that \
carry a path; of is all, or tensors: then the entries that are values are left out. checkpoint: \
components, which are items of kind component that carry a label. Parts, entries and components are \
given in no order. Names, paths and labels are plain JSON strings."""


def data_of(d):
    if isinstance(d, str):
        return bytes.fromhex(d)
    period = bytes((i * d["mul"] + d["add"]) % d["mod"] for i in range(d["mod"]))
    return (period * (d["size"] // d["mod"] + 1))[:d["size"]]


def value_of(v):
    kind, x = v["type"], v["value"]
    return {
        "null": lambda: None, "bool": lambda: x, "int": lambda: int(x), "map": lambda: dict(x),
        "float": lambda: struct.unpack(">d", bytes.fromhex(x))[0],
        "string": lambda: bytes.fromhex(x).decode("utf-8"), "bytes": lambda: bytes.fromhex(x),
        "list": lambda: list(x),
    }[kind]()


def digest(it):
    kind = it["kind"]
    if kind == "tensor":
        return tensor(it["dtype"], it["shape"], data_of(it["data"]))
    if kind == "absent":
        return absent_tensor(it["dtype"], it["shape"])
    if kind == "value":
        return value(value_of(it))
    if kind == "node":
        return node(it["node_kind"], [(p["name"], digest(p)) for p in it["parts"]])
    if kind == "component":
        return component([(e["path"], digest(e)) for e in it["entries"]
                          if it["of"] == "all" or e["kind"] != "value"])
    return checkpoint([(c["label"], digest(c)) for c in it["components"]])


def text(it):
    return "ckv1:" + digest(it).hex()


def vectors():
    def T(dtype, shape, data=None, mod=251):
        size = ITEM_SIZE[dtype] * math.prod(shape)
        return {"kind": "tensor", "dtype": dtype, "shape": shape,
                "data": {"mul": 7, "add": 3, "mod": mod, "size": size} if data is None else data}

    def A(dtype, shape):
        return {"kind": "absent", "dtype": dtype, "shape": shape}

    def plain(v):
        name = {type(None): "null", str: "string", dict: "map"}.get(type(v), type(v).__name__)
        out = {"type": name, "value": v}
        if name == "int":
            out["value"] = str(v)
        elif name == "float":
            out["value"] = struct.pack(">d", v).hex()
        elif name == "string":
            out.update(value=v.encode("utf-8").hex(), text=v)
        elif name == "bytes":
            out["value"] = v.hex()
        elif name in ("list", "map"):
            out["value"] = []
        return out

    def V(v):
        return {"kind": "value", **plain(v)}

    def N(kind, **parts):
        return {"kind": "node", "node_kind": kind,
                "parts": [{"name": n, **p} for n, p in parts.items()]}

    def C(entries, of="all"):
        return {"kind": "component", "of": of, "entries": [{"path": p, **e} for p, e in entries]}

    def K(*components):
        return {"kind": "checkpoint", "components": [{"label": n, **c} for n, c in components]}

    out = []

    def add(name, it):
        out.append({"name": name, **it, "digest": text(it)})

    # Sizes about the leaf, and about the branches of XXH3 by length.
    for dtype in ("uint8", "float8_e4m3fn", "float4_e2m1fn_x2"):
        for size in (0, 1, LEAF - 1, LEAF, LEAF + 1, 3 * LEAF + 17):
            add(f"tensor {dtype} of {size} bytes", T(dtype, [size]))
    for size in (2, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241, 512, 1024, 1025):
        add(f"tensor int8 of {size} bytes", T("int8", [size]))
    add("tensor bool of 1048577 bytes", T("bool", [LEAF + 1], mod=2))
    for dtype in ("bfloat16", "float32", "int64", "complex64", "complex128"):
        n = LEAF // ITEM_SIZE[dtype]
        for count in (n - 1, n, n + 1, 3 * n + 5):
            add(f"tensor {dtype} of {count} elements", T(dtype, [count]))
    # Ranks and dimensions.
    for shape in ([], [6], [2, 3], [3, 2], [1, 2, 3], [1, 1, 2, 3], [1, 2, 1, 3, 1]):
        add(f"tensor float32 of rank {len(shape)} {shape}", T("float32", shape))
    for shape in ([0], [0, 3], [3, 0], [2, 0, 5], [1 << 40, 0]):
        add(f"tensor float32 with a dimension of zero {shape}", T("float32", shape))
    # Each dtype, the same bytes: the name counts.
    for dtype, size in ITEM_SIZE.items():
        if dtype != "bool":
            add(f"tensor {dtype} of 48 bytes", T(dtype, [48 // size]))
    # Exact bytes.
    add("tensor bool false true true", T("bool", [3], "000101"))
    add("tensor float32 0.0", T("float32", [], "00000000"))
    add("tensor float32 -0.0", T("float32", [], "00000080"))
    add("tensor float32 NaN", T("float32", [1], "0000c07f"))
    add("tensor float32 NaN with a payload", T("float32", [1], "efbeadff"))
    add("tensor bfloat16 1 -0 NaN NaN with a payload", T("bfloat16", [4], "803f0080c07f85ff"))
    add("tensor float16 signalling NaN", T("float16", [1], "017c"))
    add("tensor float64 NaN with a payload", T("float64", [1], "efbeadde0000f87f"))
    add("tensor complex64 1-0i and NaN+2i", T("complex64", [2], "0000803f000000800100c07f00000040"))
    add("tensor float8_e4m3fn both NaN and -0", T("float8_e4m3fn", [3], "7fff80"))
    add("tensor float4_e2m1fn_x2 of shape 2 2", T("float4_e2m1fn_x2", [2, 2], "10328f07"))
    for dtype, shape in (("float32", [2, 3]), ("float32", []), ("float32", [0]), ("bool", [5]),
                         ("bfloat16", [8192, 8192, 64]), ("float4_e2m1fn_x2", [2, 2])):
        add(f"absent {dtype} {shape}", A(dtype, shape))

    for v in (None, False, True):
        add(f"value {v}", V(v))
    for v in (0, 1, 23, 24, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1,
              2**64, 2**100, -1, -24, -25, -256, -257, -2**32, -2**32 - 1, -2**63, -2**63 - 1, -2**64,
              -2**64 - 1, -2**100):
        add(f"value int {v}", V(v))
    for v in (0.0, -0.0, 1.0, 1.5, 65504.0, 65505.0, 65519.0, 65520.0, 100000.0, 5.96e-8, 2.0**-24,
              2.0**-25, 2.0**-14, 1023 * 2.0**-24, 2047 * 2.0**-25, 1 + 2.0**-10, 1 + 2.0**-11, 2.0**-149,
              2.0**-150, 3 * 2.0**-149, 3.4028234663852886e38, 3.4028235e38, 1e300, 1.1, -4.1, 5e-324,
              16777216.0, 16777217.0, math.inf, -math.inf):
        add(f"value float {v!r}", V(v))
    for bits in ("7ff8000000000000", "fff8000000000000", "7ff80000deadbeef", "7ff0000000000001"):
        add(f"value float NaN {bits}", {"kind": "value", "type": "float", "value": bits})
    for name, v in (("empty", ""), ("ASCII", "adam"), ("digit", "1"), ("umlaut", "\u00fc"),
                    ("umlaut, decomposed", "u\u0308"), ("emoji", "\U0001f600"), ("with NUL", "a\0b"),
                    ("of 23 bytes", "x" * 23), ("of 24 bytes", "x" * 24), ("of 256 bytes", "x" * 256)):
        add(f"value string {name}", V(v))
    for name, v in (("empty", b""), ("not UTF-8", b"\xff\0\x80"), ("as ASCII", b"adam"),
                    ("of 300 bytes", bytes(i % 256 for i in range(300)))):
        add(f"value bytes {name}", V(v))
    add("value empty list", V([]))
    add("value empty map", V({}))

    quantized = N("quantized", zero_point=V(3), int_repr=T("int8", [2, 2], "01ff7f80"), scale=V(0.1))
    sparse = N("sparse_coo", values=T("float32", [2], "0000803f00000040"), coalesced=V(True),
               indices=T("int64", [2, 2]), **{"size.0": V(4), "size.1": V(5)})
    add("node quantized", quantized)
    add("node sparse", sparse)
    add("node without parts", N("subclass"))
    add("node with an absent part", N("subclass", b=A("float32", [2]), a=V("")))
    add("node within a node", N("nested", scale=V(1), inner=quantized, Zero=V(None)))
    add("node with names to sort by bytes", N("k", **{n: V(n) for n in (
        "\U0001f600", "\uff5e", "\u00e9", "a.10", "a.2", "a", "aa", "Z", "", "a\0")}))

    w, b = T("float32", [2, 2]), T("float32", [2], "0000803f00000080")
    add("component empty", C([]))
    add("component of one tensor", C([("w", w)]))
    add("component of a root tensor", C([("", w)]))
    add("component a.2 and a.10", C([("a.2", w), ("a.10", b)]))
    add("component Z and a", C([("a", w), ("Z", b)]))
    add("component a-b and a.b", C([("a.b", w), ("a-b", b), ("a", V(1))]))
    add("component non-ASCII paths", C([("\U0001f600", w), ("\uff5e", b), ("\u00e9", V(1)), ("z", V(2))]))
    add("component tied entries", C([("lm_head.weight", w), ("embed.weight", w)]))
    mixed = [("step", V(7)), ("w", w), ("q", quantized), ("meta", A("float32", [3])), ("name", V("m")),
             ("groups", V([])), ("s", sparse)]
    add("component of all kinds", C(mixed))
    add("component of all kinds, tensors alone", C(mixed, "tensors"))
    add("component of values, tensors alone", C([("step", V(7))], "tensors"))

    model, rng = C([("w", w), ("b", b)]), T("uint8", [5056])
    ranks = [(f"rng.{i}", C([("cpu", rng), ("seed", V(i))])) for i in (10, 2, 1, 0)]
    add("checkpoint empty", K())
    add("checkpoint of a model", K(("model", model)))
    add("checkpoint of a model and an optimizer", K(("optimizer", C(mixed)), ("model", model)))
    add("checkpoint with a label for each rank", K(*ranks, ("model", model), ("rng", C([]))))
    add("checkpoint with one component twice", K(("model", model), ("ema", model)))
    return out


def main(mode, path):
    if mode == "--write":
        lines = ",\n".join(json.dumps(v, ensure_ascii=False) for v in vectors())
        with open(path, "w", encoding="utf-8") as f:
            f.write('{"about": %s,\n"vectors": [\n%s\n]}\n' % (json.dumps(ABOUT), lines))
        return 0
    if mode != "--check":
        sys.exit(__doc__)
    with open(path, encoding="utf-8") as f:
        given = json.load(f)["vectors"]
    for v in given:
        if text(v) != v["digest"]:
            print(f"{v['name']}: the file says {v['digest']}, recomputed {text(v)}")
            return 1
    print(f"{len(given)} vectors agree")
    return 0 if given else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) == 3 else __doc__)
