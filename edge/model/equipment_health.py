"""The state of the equipment of a gateway, for people and monitoring; no job depends on it."""

from msgspec import Struct

from edge.model.equipment_connection import ConnectionState


class OpenSafing(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A stop, a reset or a release that equipment has not confirmed: its tool may still be active.

    `what` is `stop`, `reset` or `release`; a release disables a tool that no command needs, and names no command.
    `since` is in milliseconds since the epoch; `tries` counts the tries of the gateway; `reason` is why the last one
    was not confirmed, where the equipment says so.
    """

    what: str
    command_id: str = ""
    since: int
    tries: int = 0
    reason: str = ""


class EquipmentHealth(Struct, frozen=True, kw_only=True):
    """The state of one piece of equipment; counts since the gateway started, instants in milliseconds since the epoch.

    `connected` is None while the equipment has not reported its presence; `connection` says since when, and why it is
    not connected; a report of an earlier version has none. `last_seen` is the instant of its last
    message, connection or disconnection. `outstanding` commands wait for an answer, `answered` ones have one,
    `failed` ones among them were not carried out. `ignored` counts late or repeated answers and events without a
    waiting action, `refused` refused messages, `unknown` commands whose outcome could not be found, `late` results
    without a waiting command, `declined_stops` stops and resets that it did not carry out, `repeated_starts` starts
    that it may have received before, `lost_traces` curves and files of its results that are not stored. `ok` and
    `not_ok` count the results by their evaluation, where it reports one. `unsolicited` counts the
    answers of a flood, which no command waited for and which are not kept. `problem` is why it cannot work although
    it is connected, or that it may still be active. `safing` counts the stops, resets and releases that it has not
    confirmed, `open_safing` are the oldest of these. `programs` are the joining processes, parameter sets or jobs that
    it lists, the first 200. `last_late` is which of its results did not count last, and why.
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
    ok: int = 0
    not_ok: int = 0
    repeated_starts: int = 0
    unknown: int = 0
    late: int = 0
    unsolicited: int = 0
    declined_stops: int = 0
    lost_traces: int = 0
    problem: str = ""
    safing: int = 0
    open_safing: tuple[OpenSafing, ...] = ()
    last_error: str = ""
    last_late: str = ""
    last_late_at: int | None = None
    programs: tuple[str, ...] = ()
    connection: ConnectionState = ConnectionState()

    @property
    def obstacle(self) -> str:
        """Return why it cannot work now: it is not connected, or has a problem; empty when it can."""
        return (self.connection.text or "not connected") if self.connected is False else self.problem


class EquipmentReport(Struct, frozen=True, kw_only=True):
    """The state of all equipment of a gateway at an instant, in milliseconds since the epoch."""

    at: int
    equipment: tuple[EquipmentHealth, ...]
