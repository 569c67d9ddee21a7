"""Reads records of decisions as release 0.9.0 wrote them: `{mirrors}2c3S-1+2[members]`.

Each letter follows the place of its action, a sign precedes the place of a step; `3.1f` is attempt 1 of action 3, which
was left behind. `>` at the end: the step of the first completed action was left, that of the first command entered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from edge.sfc.net import Net

_TOKEN: Final = re.compile(r"([+-])([0-9]+)|([0-9]+)(?:\.([0-9]+))?([A-Za-z])")
_COMMANDS: Final = frozenset("BTQPCSR")
_COMPLETED: Final = "c"
_FIRST_VALUE: Final = json.JSONDecoder()


def read_old_record(net: Net, text: str) -> list[Any]:
    """Return the array that is written now: codes of actions, steps, members of the signal, mirrors.

    Raises ValueError or LookupError for any other text.
    """
    mirrors: Mapping[str, Any] = {}
    if text.startswith("{"):
        mirrors, end = _FIRST_VALUE.raw_decode(text)
        text = text[end:]
    changes, bracket, members = text.partition("[")
    tokens = list(_TOKEN.finditer(changes.removesuffix(">")))
    if "".join(token[0] for token in tokens) != changes.removesuffix(">"):
        raise ValueError(f"{text!r} is not a record of a decision")
    codes = [
        part
        for _, _, place, attempt, letter in (token.groups() for token in tokens)
        if letter
        for part in ((int(place), int(attempt)) if attempt else int(place), letter)
    ]
    steps = [part for token in tokens if token[1] for part in (int(token[2]), int(token[1] == "+"))]
    if changes.endswith(">"):
        steps = _usual_steps(net, codes)
    return [codes, steps, msgspec.json.decode(bracket + members, type=list[Any]) if bracket else [], mirrors]


def _usual_steps(net: Net, codes: list[Any]) -> list[int]:
    pairs = list(zip(codes[::2], codes[1::2], strict=True))
    completed = [place if isinstance(place, int) else place[0] for place, code in pairs if code == _COMPLETED]
    commanded = [place for place, code in pairs if code in _COMMANDS]
    if not completed or not commanded:
        raise ValueError("no action is completed, or none commanded")
    steps = [net.steps[action.step].index for action in net.actions.values()]
    return [steps[min(completed)], 0, steps[commanded[0]], 1]
