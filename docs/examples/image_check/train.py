"""Makes the weights of `image_check.py`.

Call it with the name of their file: `python train.py weights.json`. It learns from drawn images;
for a real part, replace `images` by photographs that a person has judged.
"""

import json
import math
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from image_check import SIDE, Rows, reduce, score

HIDDEN = 5
_SIZE = 16
_EPOCHS = 25
_RATE = 0.05


def draw(chance: random.Random, *, good: bool) -> Rows:
    """Return the image of a bright disc with noise; a good one has a dark hole in its centre."""
    x, y = (_SIZE / 2 + chance.uniform(-1, 1) for _ in range(2))
    bright, dark, noise = chance.uniform(140, 220), chance.uniform(20, 60), chance.uniform(2, 12)
    hole = chance.uniform(1.8, 2.6) if good else 0.0

    def pixel(column: int, row: int) -> float:
        distance = math.hypot(column + 0.5 - x, row + 0.5 - y)
        return (bright if hole < distance < 6.5 else dark) + chance.gauss(0, noise)

    return [[pixel(column, row) for column in range(_SIZE)] for row in range(_SIZE)]


def images(chance: random.Random, number: int) -> Iterator[tuple[list[float], float]]:
    """Yield reduced images with 1 for a good part and 0 for a bad one."""
    for index in range(number):
        good = index % 2 == 0
        yield reduce(draw(chance, good=good)), float(good)


def train(seed: int = 1, number: int = 300) -> dict[str, Any]:
    """Return weights, learnt by gradient descent."""
    chance = random.Random(seed)
    weights: dict[str, Any] = {
        "hidden": [[chance.gauss(0, 1 / SIDE) for _ in range(SIDE * SIDE)] for _ in range(HIDDEN)],
        "hidden_bias": [0.0] * HIDDEN,
        "output": [chance.gauss(0, 1) for _ in range(HIDDEN)],
        "output_bias": 0.0,
    }
    known = list(images(chance, number))
    for _ in range(_EPOCHS):
        chance.shuffle(known)
        for pixels, expected in known:
            _learn(weights, pixels, expected)
    weights["hidden"] = [[round(value, 3) for value in row] for row in weights["hidden"]]
    return weights


def _learn(weights: dict[str, Any], pixels: list[float], expected: float) -> None:
    hidden = [
        math.tanh(sum(weight * pixel for weight, pixel in zip(row, pixels, strict=True)) + bias)
        for row, bias in zip(weights["hidden"], weights["hidden_bias"], strict=True)
    ]
    error = _RATE * (score(weights, pixels) - expected)
    for index, value in enumerate(hidden):
        slope = error * weights["output"][index] * (1 - value * value)
        weights["output"][index] -= error * value
        weights["hidden_bias"][index] -= slope
        row = weights["hidden"][index]
        for place, pixel in enumerate(pixels):
            row[place] -= slope * pixel
    weights["output_bias"] -= error


def accuracy(weights: dict[str, Any], seed: int, number: int = 200) -> float:
    """Return the part of new images that the net judges correctly."""
    judged = [(score(weights, pixels) >= 0.5) == bool(good) for pixels, good in images(random.Random(seed), number)]
    return sum(judged) / len(judged)


if __name__ == "__main__":
    learnt = train()
    Path(sys.argv[1]).write_text(json.dumps(learnt) + "\n", encoding="utf-8")
    sys.stdout.write(f"{accuracy(learnt, seed=2):.1%} of 200 new images are judged correctly\n")
