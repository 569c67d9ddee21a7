"""The recipes that run while things are killed, and what each demands of equipment, steps and time."""

import itertools
from dataclasses import dataclass, field
from typing import Any

DO = "chaos.do.v1"
MEASURE = "chaos.measure.v1"
SILENT = "chaos.silent.v1"
SEEN = "chaos.seen.v1"
TIMEOUT_MS = 700


@dataclass(frozen=True, slots=True)
class Demand:
    """What a completed run of a recipe comes to.

    `commands` are those that equipment must get, by action, attempt and phase; `order` says which action has to be
    answered before which other is commanded; `events` is how many events the run takes, `timeouts` how many time out.
    """

    steps: dict[str, int]
    commands: frozenset[tuple[str, int, str]]
    order: tuple[tuple[str, str], ...] = ()
    events: int = 0
    timeouts: int = 0


@dataclass(frozen=True, slots=True)
class Kind:
    """A recipe with its demand; jobs with an odd number measure badly at first, which may ask for more."""

    name: str
    recipe: dict[str, Any]
    demand: Demand
    if_bad: Demand | None = field(default=None)

    def demand_of(self, number: int) -> Demand:
        """Return the demand of the job of that number."""
        return self.if_bad if self.if_bad and number % 2 else self.demand


def is_good(number: int, attempt: int) -> bool:
    """Return the result that the equipment measures."""
    return number % 2 == 0 or attempt > 1


def _action(step: str, type_id: str = DO, timeout_ms: int = 0) -> dict[str, Any]:
    interaction = "pull_event" if type_id == SEEN else "push_command"
    action = {"name": step.lower(), "step": step, "qualifier": "N", "interaction": interaction, "type_id": type_id}
    return action | ({"timeout_seconds": timeout_ms / 1000} if timeout_ms else {})


def _steps(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "initial": True} if n == 0 else {"name": name} for n, name in enumerate(names)]


def _then(source: str, target: str, condition: str = "always") -> dict[str, str]:
    return {"source": source, "target": target, "condition": condition}


def _once(*steps: str) -> dict[str, int]:
    return dict.fromkeys(steps, 1)


def _starts(*actions: str) -> frozenset[tuple[str, int, str]]:
    return frozenset((action, 1, "start") for action in actions)


_LINE = ("A", "B", "C", "D", "E")
_LINEAR = Kind(
    "linear",
    {
        "steps": _steps(*_LINE, "Done"),
        "transitions": [_then(a, b) for a, b in zip(_LINE, (*_LINE[1:], "Done"), strict=True)],
        "actions": [_action(step) for step in _LINE],
    },
    Demand(
        _once(*_LINE, "Done"),
        _starts(*(step.lower() for step in _LINE)),
        order=tuple((a.lower(), b.lower()) for a, b in itertools.pairwise(_LINE)),
    ),
)
_SIMULTANEOUS = Kind(
    "simultaneous",
    {
        "steps": _steps("Clamp", "Left", "LeftAgain", "Right", "Loosen", "Done"),
        "branches": [{"name": "Both", "type": "simultaneous", "branches": [["Left", "LeftAgain"], ["Right"]]}],
        "transitions": [_then("Clamp", "Both"), _then("Both", "Loosen"), _then("Loosen", "Done")],
        "actions": [_action(step) for step in ("Clamp", "Left", "LeftAgain", "Right", "Loosen")],
    },
    Demand(
        _once("Clamp", "Left", "LeftAgain", "Right", "Loosen", "Done"),
        _starts("clamp", "left", "leftagain", "right", "loosen"),
        order=(
            *(("clamp", "left"), ("clamp", "right"), ("left", "leftagain")),
            *(("leftagain", "loosen"), ("right", "loosen")),
        ),
    ),
)
_SELECTION = Kind(
    "selection",
    {
        "steps": _steps("Measure", "Rework", "Pack"),
        "transitions": [
            _then("Measure", "Pack", "good"),
            _then("Measure", "Rework", "not good"),
            _then("Rework", "Measure"),
        ],
        "actions": [_action("Measure", MEASURE), _action("Rework"), _action("Pack")],
    },
    Demand(_once("Measure", "Pack"), _starts("measure", "pack"), order=(("measure", "pack"),)),
    if_bad=Demand(
        {"Measure": 2, "Rework": 1, "Pack": 1},
        _starts("measure", "rework", "pack") | {("measure", 2, "start")},
        order=(("measure", "rework"), ("rework", "pack")),
    ),
)
_PULLING = Kind(
    "pulling",
    {
        "steps": _steps("Place", "Look", "LookAgain", "Done"),
        "transitions": [_then("Place", "Look"), _then("Look", "LookAgain"), _then("LookAgain", "Done")],
        "actions": [_action("Place"), _action("Look", SEEN), _action("LookAgain", SEEN)],
    },
    Demand(_once("Place", "Look", "LookAgain", "Done"), _starts("place"), events=2),
)
_PATIENCE = Kind(
    "patience",
    {
        "steps": _steps("Wait", "Manual", "Done"),
        "transitions": [_then("Wait", "Manual", "actions.wait.timed_out"), _then("Manual", "Done")],
        "actions": [_action("Wait", SILENT, TIMEOUT_MS), _action("Manual")],
    },
    Demand(
        _once("Wait", "Manual", "Done"),
        _starts("wait", "manual") | {("wait", 1, "stop")},
        timeouts=1,
    ),
)

KINDS = (_LINEAR, _SIMULTANEOUS, _SELECTION, _PULLING, _PATIENCE)
