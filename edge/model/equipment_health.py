"""The state of the equipment of a gateway, for people and monitoring; no job depends on it."""

from msgspec import Struct

from edge.foundation.text import ENGLISH, Text, stated_in
from edge.model.equipment_connection import NOT_CONNECTED, ConnectionState, PublicConnection, public_connection
from edge.model.instant import Instant, rfc3339


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
    reason: str | Text = ""


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
    problem: str | Text = ""
    safing: int = 0
    open_safing: tuple[OpenSafing, ...] = ()
    last_error: str | Text = ""
    last_late: str | Text = ""
    last_late_at: int | None = None
    programs: tuple[str, ...] = ()
    connection: ConnectionState = ConnectionState()

    @property
    def obstacle(self) -> str | Text:
        """Return why it cannot work now: it is not connected, or has a problem; empty when it can."""
        return (self.connection.text or NOT_CONNECTED) if self.connected is False else self.problem


class EquipmentReport(Struct, frozen=True, kw_only=True):
    """The state of all equipment of a gateway at an instant, in milliseconds since the epoch."""

    at: int
    equipment: tuple[EquipmentHealth, ...]


class PublicSafing(Struct, frozen=True, kw_only=True):
    """An OpenSafing as `--json` and the HTTP API state it."""

    what: str
    command_id: str
    since: Instant
    tries: int
    reason: str


class PublicEquipment(Struct, frozen=True, kw_only=True):
    """A piece of equipment as `--json` and the HTTP API state it: its EquipmentHealth, reported by a gateway `at`.

    `gateway_at_work`: the gateway runs, so that its report is current.
    """

    name: str
    kind: str
    gateway: str
    gateway_at_work: bool
    at: Instant
    connected: bool | None
    connection: PublicConnection
    last_seen: Instant | None
    outstanding: int
    answered: int
    failed: int
    ignored: int
    refused: int
    ok: int
    not_ok: int
    repeated_starts: int
    unknown: int
    late: int
    unsolicited: int
    declined_stops: int
    lost_traces: int
    problem: str
    safing: int
    open_safing: tuple[PublicSafing, ...]
    last_error: str
    last_late: str
    last_late_at: Instant | None
    programs: tuple[str, ...]


def public_equipment(
    health: EquipmentHealth, gateway: str, at: int, *, at_work: bool, language: str = ENGLISH
) -> PublicEquipment:
    """Return the public form of equipment that a gateway has reported at an instant in milliseconds since the epoch."""
    return PublicEquipment(
        name=health.name,
        kind=health.kind,
        gateway=gateway,
        gateway_at_work=at_work,
        at=rfc3339(at),
        connected=health.connected,
        connection=public_connection(health.connection, language),
        last_seen=rfc3339(health.last_seen),
        outstanding=health.outstanding,
        answered=health.answered,
        failed=health.failed,
        ignored=health.ignored,
        refused=health.refused,
        ok=health.ok,
        not_ok=health.not_ok,
        repeated_starts=health.repeated_starts,
        unknown=health.unknown,
        late=health.late,
        unsolicited=health.unsolicited,
        declined_stops=health.declined_stops,
        lost_traces=health.lost_traces,
        problem=stated_in(health.problem, language),
        safing=health.safing,
        open_safing=tuple(_public_safing(safing, language) for safing in health.open_safing),
        last_error=stated_in(health.last_error, language),
        last_late=stated_in(health.last_late, language),
        last_late_at=rfc3339(health.last_late_at),
        programs=health.programs,
    )


def _public_safing(safing: OpenSafing, language: str) -> PublicSafing:
    return PublicSafing(
        what=safing.what,
        command_id=safing.command_id,
        since=rfc3339(safing.since),
        tries=safing.tries,
        reason=stated_in(safing.reason, language),
    )
