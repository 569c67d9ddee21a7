"""`[maintenance]`: what else a maintenance mode does, and how an upgrade begins."""

from typing import Annotated

from msgspec import Meta, Struct


class MaintenanceSettings(Struct, frozen=True, kw_only=True):
    """`[maintenance]`: alarms during maintenance, and how an upgrade of the package begins."""

    suppress_alarms: Annotated[
        tuple[str, ...],
        Meta(
            description="Rules whose alarms are suppressed during maintenance, by id; `*` matches any text, so that "
            '`["*"]` suppresses all.'
        ),
    ] = ()
    drain_before_upgrade: Annotated[
        int,
        Meta(
            ge=0,
            le=86_400,
            description="Seconds for which an upgrade of the package waits for the end of running jobs, with the "
            "maintenance mode on; 0: it does not wait.",
        ),
    ] = 0
