"""Operations as they are stored: work that takes longer than a second and is not a job, such as a backup."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct


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
    text: str = ""
    result: str = ""
    error: str = ""
    cancelled_by: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether its state is final."""
        return self.state not in {OperationState.SCHEDULED, OperationState.RUNNING}
