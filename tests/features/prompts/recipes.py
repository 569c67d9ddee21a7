"""Actions of recipes that ask a person."""

from typing import Any

from tests.station.plant import action

PREFIX = "com.example.station.operator"
TYPES = frozenset(f"{PREFIX}.{kind}.v1" for kind in ("confirm", "choose", "enter"))


def prompt(kind: str, name: str = "ask", step: str = "Ask", **members: Any) -> dict[str, object]:
    """Return an action that asks a person; members that are not of an action are parameters."""
    of_action = {key: members.pop(key) for key in ("qualifier", "timeout_seconds", "interventions") if key in members}
    return action(name, step, f"{PREFIX}.{kind}.v1", parameters={"title": "Seat the cable"} | members, **of_action)


CONFIRM = prompt("confirm")
CHOOSE = prompt("choose", choices=[{"value": "ok", "title": {"de": "Ja", "en": "Yes"}}, {"value": "defective"}])
ENTER = prompt(
    "enter",
    fields=[
        {"name": "mass", "type": "number", "unit": "kg", "min": 1, "max": 9},
        {"name": "serial", "type": "scan"},
        {"name": "note", "optional": True},
    ],
)
