"""How the equipment of a gateway is, for people and their monitoring; no job depends on it."""

from msgspec import Struct


class EquipmentHealth(Struct, frozen=True, kw_only=True):
    """How one piece of equipment is; counts are those since the gateway started, instants milliseconds since the epoch.

    `connected` is None when the equipment has not said whether it is there. `last_seen` is when it last said something,
    came or went. `outstanding` are commands that wait for an answer, `answered` those that were, `failed` those of them
    that it could not do, `ignored` answers that came late or again and events that nobody waited for, `refused`
    messages of it that could not be taken. `unknown` are commands whose outcome could not be found, `late` results that
    no command waited for, `declined_stops` stops and resets that it did not carry out. `problem` is why it cannot work
    although it is connected. `safing` are stops and resets that it has not confirmed: it may still be active.
    """

    name: str
    kind: str
    connected: bool | None = None
    last_seen: int | None = None
    outstanding: int = 0
    answered: int = 0
    failed: int = 0
    ignored: int = 0
    refused: int = 0
    unknown: int = 0
    late: int = 0
    declined_stops: int = 0
    problem: str = ""
    safing: int = 0
    last_error: str = ""


class EquipmentReport(Struct, frozen=True, kw_only=True):
    """How all equipment of a gateway was at an instant, in milliseconds since the epoch."""

    at: int
    equipment: tuple[EquipmentHealth, ...]
