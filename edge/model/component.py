"""The components of a plant: gateways, workers and sidecars, as they register in the store."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

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
    problems: str = ""
    jobs: int | None = None
    alarms: int | None = None
    certificate_expiry: str = ""
    drift: str | None = None


class PluginState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of an equipment kind or node kind that a component has loaded."""

    name: str
    kind: str
    state: str
    problem: str = ""
