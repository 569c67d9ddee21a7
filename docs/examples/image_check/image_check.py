"""Checks the image of a part with a small neural net, which looks for the hole in its centre.

The input of the node is the name of a PGM file (P2 or P5), as cameras write it, or the rows of an image as lists of
numbers. `train.py` makes the weights.
"""

import functools
import json
import math
from pathlib import Path
from typing import Any

from edge.features.flows.nodes.kind import Attempt, Compute, Inputs, NodeConfig, NodeError, NodeKind, Output
from edge.features.flows.nodes.progress import report_progress

SIDE = 8
"""An image is reduced to so many rows and columns before the net sees it."""
_MOST_PIXELS = 4_000_000

Rows = list[list[float]]


class ImageCheckConfig(NodeConfig, frozen=True):
    """The file of the weights, and the least score of a good part."""

    weights: str
    least: float = 0.5


def run(config: ImageCheckConfig, attempt: Attempt) -> Output:
    """Return the score of the image, from 0 to 1, and whether the part is good."""
    rows = _read(attempt.input)
    report_progress(50, "image read")
    found = score(_load(config.weights, Path(config.weights).stat().st_mtime_ns), reduce(rows))
    return Output({"score": round(found, 4), "good": found >= config.least})


def score(weights: dict[str, Any], pixels: list[float]) -> float:
    """Return the output of the net: one hidden layer of tanh, one sigmoid."""
    hidden = [
        math.tanh(sum(weight * pixel for weight, pixel in zip(row, pixels, strict=True)) + bias)
        for row, bias in zip(weights["hidden"], weights["hidden_bias"], strict=True)
    ]
    total = sum(weight * value for weight, value in zip(weights["output"], hidden, strict=True))
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, total + weights["output_bias"]))))


def reduce(rows: Rows) -> list[float]:
    """Return the means of SIDE x SIDE fields of an image, scaled to mean 0 and deviation 1."""
    height, width = len(rows), len(rows[0])
    means = []
    for y in range(SIDE):
        for x in range(SIDE):
            field = [
                value
                for row in rows[y * height // SIDE : (y + 1) * height // SIDE]
                for value in row[x * width // SIDE : (x + 1) * width // SIDE]
            ]
            means.append(sum(field) / len(field))
    mean = sum(means) / len(means)
    deviation = math.sqrt(sum((item - mean) ** 2 for item in means) / len(means)) or 1.0
    return [(item - mean) / deviation for item in means]


@functools.lru_cache(maxsize=4)
def _load(file: str, _changed_at: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(file).read_text(encoding="utf-8"))
    return found


def _read(image: object) -> Rows:
    rows = _read_pgm(Path(image)) if isinstance(image, str) else image
    if not isinstance(rows, list) or len(rows) < SIDE or not all(isinstance(row, list) for row in rows):
        raise NodeError(f"expected the name of a PGM file, or at least {SIDE} rows of numbers")
    if len({len(row) for row in rows}) != 1 or len(rows[0]) < SIDE:
        raise NodeError(f"expected rows of one length, at least {SIDE}")
    if any(isinstance(value, bool) or not isinstance(value, int | float) for row in rows for value in row):
        raise NodeError("expected numbers only")
    return rows


def _read_pgm(file: Path) -> Rows:
    data = file.read_bytes()
    fields: list[bytes] = []
    position = 0
    while len(fields) < 4 and position < len(data):
        end = position
        while end < len(data) and not data[end : end + 1].isspace():
            end += 1
        field = data[position:end]
        if field.startswith(b"#"):
            end = data.find(b"\n", position)
        elif field:
            fields.append(field)
        position = end + 1
    try:
        magic, width, height, largest = fields[0], int(fields[1]), int(fields[2]), int(fields[3])
    except (IndexError, ValueError):
        raise NodeError(f"{file}: it is not a PGM file") from None
    if magic not in {b"P2", b"P5"} or not 0 < largest < 256 or not 0 < width * height <= _MOST_PIXELS:
        raise NodeError(f"{file}: expected a PGM file of 8 bits and at most {_MOST_PIXELS} pixels")
    pixels = list(map(int, data[position:].split())) if magic == b"P2" else list(data[position:])
    if len(pixels) < width * height:
        raise NodeError(f"{file}: the image is cut off")
    return [[float(value) for value in pixels[row * width : (row + 1) * width]] for row in range(height)]


KIND = NodeKind("site.image_check", "Checks the image of a part.", ImageCheckConfig, Inputs.ONE, Compute(run))
