"""A plant of gateways as it is stored: its components, their operations, and its maintenance mode."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal

from msgspec import Struct

from edge.foundation.text import ENGLISH, Text, stated_in
from edge.model.instant import Instant, rfc3339
from edge.model.isa95 import Payload, ReturnStatus

ComponentKind = Literal["gateway", "worker", "sidecar"]


class Component(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A component as it was last: `started` is in milliseconds since the epoch, `certificate_expiry` a date.

    `problems` are what keeps it from its work, empty when it is healthy. `drift` is how its configuration differs from
    its files; None when it has no files to compare with.
    """

    id: str
    kind: ComponentKind
    version: str
    started: int
    host: str = ""
    pid: int = 0
    labels: Mapping[str, str] = {}
    scopes: tuple[str, ...] = ()
    problems: str | Text = ""
    jobs: int | None = None
    alarms: int | None = None
    certificate_expiry: str = ""
    drift: str | Text | None = None


class PluginState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of an equipment kind or node kind that a component has loaded."""

    name: str
    kind: str
    state: str
    problem: str = ""


class PublicPlugin(Struct, frozen=True, kw_only=True):
    """A PluginState as `--json` and the HTTP API state it."""

    name: str
    kind: str
    state: str
    problem: str


class PublicComponent(Struct, frozen=True, kw_only=True):
    """A Component as `--json` and the HTTP API state it.

    `seen_at` is its last heartbeat, null before the first; `away`: its heartbeats are missing, or it has ended.
    """

    id: str
    kind: ComponentKind
    version: str
    host: str
    pid: int
    labels: Mapping[str, str]
    scopes: tuple[str, ...]
    started_at: Instant
    seen_at: Instant | None
    away: bool
    problems: str
    jobs: int | None
    alarms: int | None
    certificate_expiry: str
    drift: str | None
    plugins: tuple[PublicPlugin, ...]


class OperationType(StrEnum):
    """The operations that a gateway executes; a restore is executed by its command, while no gateway works."""

    BACKUP = "backup"
    SUPPORT_BUNDLE = "support-bundle"
    EXPORT = "export"
    IMPORT = "import"
    RECORD = "record"
    UPGRADE_CHECK = "upgrade-check"
    RESTORE = "restore"


class OperationState(StrEnum):
    """The state of an operation; the last three are final."""

    SCHEDULED = "scheduled"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Operation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One operation; instants are milliseconds since the epoch.

    `by` has requested it, `owner` executes it and renews the lease that ends at `until`. `daily` is the time of day at
    which it is scheduled again. `text` is its present stage, `result` what it has made, `error` why it has failed.
    """

    id: str
    type: OperationType
    state: OperationState = OperationState.SCHEDULED
    by: str
    due: int
    created: int
    arguments: Mapping[str, str] = {}
    daily: str = ""
    owner: str = ""
    until: int | None = None
    started: int | None = None
    ended: int | None = None
    text: str | Text = ""
    result: str | Text = ""
    error: str | Text = ""
    cancelled_by: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether its state is final."""
        return self.state not in {OperationState.SCHEDULED, OperationState.RUNNING}


class PublicOperation(Struct, frozen=True, kw_only=True):
    """An operation as `--json` and the HTTP API state it, with its progress from 0 to 100.

    `due_at` is null for one that was due at once. The other members are those of Operation.
    """

    id: str
    type: OperationType
    state: OperationState
    progress: float
    text: str
    by: str
    owner: str
    arguments: Mapping[str, str]
    daily: str
    due_at: Instant | None
    created_at: Instant
    started_at: Instant | None
    ended_at: Instant | None
    result: str
    error: str
    cancelled_by: str
    has_ended: bool


def public_operation(operation: Operation, progress: float, language: str = ENGLISH) -> PublicOperation:
    """Return the public form of an operation, with its texts in a language."""
    return PublicOperation(
        id=operation.id,
        type=operation.type,
        state=operation.state,
        progress=progress,
        text=stated_in(operation.text, language),
        by=operation.by,
        owner=operation.owner,
        arguments=operation.arguments,
        daily=operation.daily,
        due_at=rfc3339(operation.due or None),
        created_at=rfc3339(operation.created),
        started_at=rfc3339(operation.started),
        ended_at=rfc3339(operation.ended),
        result=stated_in(operation.result, language),
        error=stated_in(operation.error, language),
        cancelled_by=operation.cancelled_by,
        has_ended=operation.has_ended,
    )


MAINTENANCE_METHODS: Final = ("On", "Off", "Show")
"""The methods of the maintenance mode that the MES and sidecars call."""

DEFAULT_MESSAGE: Final = "{$MaintenanceMessage}"
"""The message of a maintenance mode that names none: a localised text of the product."""

UPGRADE: Final = "package upgrade"
"""Who has switched a mode on that ends at the next start of its gateway."""
UPGRADE_MESSAGE: Final = "{$UpgradeMessage}"


class MaintenanceKind(StrEnum):
    """What happens to the jobs that run: they end, or they are paused."""

    DRAIN = "drain"
    NOW = "now"


class Maintenance(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A maintenance mode that is on; instants are milliseconds since the epoch.

    `message` may hold placeholders `{$Name}`; `until` is when it is expected to end, and ends nothing by itself.
    """

    kind: MaintenanceKind = MaintenanceKind.DRAIN
    message: str = DEFAULT_MESSAGE
    since: int = 0
    until: int | None = None
    by: str = ""


class PublicMaintenance(Struct, frozen=True, kw_only=True):
    """The maintenance mode as `--json` and the HTTP API state it; `message` is in the language of the caller."""

    on: bool
    kind: str = ""
    message: str = ""
    by: str = ""
    since: Instant | None = None
    until: Instant | None = None


def public_maintenance(mode: Maintenance | None, message: str = "") -> PublicMaintenance:
    """Return the public form of a mode, None where it is off, with its message in the language of the caller."""
    if mode is None:
        return PublicMaintenance(on=False)
    return PublicMaintenance(
        on=True,
        kind=mode.kind.value,
        message=message,
        by=mode.by,
        since=rfc3339(mode.since or None),
        until=rfc3339(mode.until),
    )


class MaintenanceCall(Payload, frozen=True, kw_only=True):
    """The arguments of On, Off and Show.

    `now` pauses the jobs that run, else they end. `gateway` names the only gateway that is meant; without it all
    gateways of the store are. `by` is the person behind the call.

    Example: {"Message": "Compressor is replaced", "Until": "2026-11-26T18:00:00Z", "By": "anna"}
    """

    message: str = ""
    until: datetime | None = None
    now: bool = False
    gateway: str = ""
    by: str = ""


class MaintenanceAnswer(Payload, frozen=True, kw_only=True):
    """The mode after a call; `message` is localised, `running_jobs` are those that have not ended.

    Example: {"ReturnStatus": 1, "On": true, "Kind": "drain", "Message": "Compressor is replaced",
     "Since": "2026-11-26T16:42:05Z", "Until": "2026-11-26T18:00:00Z", "By": "anna", "RunningJobs": 1}
    """

    return_status: ReturnStatus
    on: bool
    kind: MaintenanceKind | None = None
    message: str = ""
    since: datetime | None = None
    until: datetime | None = None
    by: str = ""
    running_jobs: int = 0
