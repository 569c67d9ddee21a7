"""The maintenance mode as it is stored, and the calls that switch it."""

from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct

from edge.model.isa95 import Payload, ReturnStatus

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


class MaintenanceCall(Payload, frozen=True, kw_only=True):
    """The arguments of On, Off and Show.

    `now` pauses the jobs that run, else they end. `gateway` names the only gateway that is meant; without it all
    gateways of the store are. `by` is the person behind the call.
    """

    message: str = ""
    until: datetime | None = None
    now: bool = False
    gateway: str = ""
    by: str = ""


class MaintenanceAnswer(Payload, frozen=True, kw_only=True):
    """The mode after a call; `message` is localised, `running_jobs` are those that have not ended."""

    return_status: ReturnStatus
    on: bool
    kind: MaintenanceKind | None = None
    message: str = ""
    since: datetime | None = None
    until: datetime | None = None
    by: str = ""
    running_jobs: int = 0
