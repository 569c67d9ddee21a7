"""The state shown to clients at one instant, in plain values; instants and durations are in milliseconds."""

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from functools import cached_property
from typing import Any, Final, TypeAlias

from msgspec import Struct

from edge.model.equipment_health import EquipmentHealth
from edge.model.localized_text import AuthorText
from edge.model.plant import Maintenance
from edge.model.recipe_name import NO_RECIPE_NAME, RecipeName
from edge.station.public_result import ResultValue, measured_values


class PartTexts(Struct, frozen=True):
    """The title and the description of a part of a chart as its author wrote them; empty without one."""

    title: AuthorText = ""
    description: AuthorText = ""


NO_TEXTS: Final = PartTexts()


class StepView(Struct, frozen=True):
    """A step: X, T and the number of its activations (IEC 61131-3, 6.7.2)."""

    active: bool = False
    elapsed_ms: int = 0
    count: int = 0
    texts: PartTexts = NO_TEXTS


class ActionView(Struct, frozen=True, dict=True):
    """An action of a step: the state of its latest activation."""

    state: str
    attempt: int = 0
    result: Any = None
    deadline: int | None = None
    error: str = ""
    texts: PartTexts = NO_TEXTS

    @cached_property
    def measured(self) -> Mapping[str, ResultValue]:
        """The numbers of the result that have a unit, by their paths in it."""
        return {value.name: value for value in measured_values(self.result)}


class ChartView(Struct, frozen=True):
    """A run: its recipe, its state, every step and action, and the reasons why it waits."""

    recipe: str
    state: str
    started_at: int | None
    steps: Mapping[str, StepView]
    actions: Mapping[str, ActionView]
    waiting: tuple[str, ...] = ()
    error: str = ""
    deadline: int | None = None
    texts: PartTexts = NO_TEXTS
    recipe_name: RecipeName = NO_RECIPE_NAME


class GatewayView(Struct, frozen=True):
    """The state of the gateway: one line of text, the memory of its store in bytes (limit 0: none), its equipment."""

    status: str
    memory_used: int
    memory_limit: int
    is_nearly_full: bool
    equipment: Mapping[str, EquipmentHealth]


class ServiceLevel(IntEnum):
    """The ServiceLevels of this server, one of each range (OPC 10000-4, table 105)."""

    MAINTENANCE = 0
    NO_DATA = 1
    DEGRADED = 100
    HEALTHY = 255


def service_level(mode: Maintenance | None, *, has_store: bool, is_degraded: bool) -> ServiceLevel:
    """Return the ServiceLevel; a client of several servers takes the one with the highest."""
    if mode is not None:
        return ServiceLevel.MAINTENANCE
    if not has_store:
        return ServiceLevel.NO_DATA
    return ServiceLevel.DEGRADED if is_degraded else ServiceLevel.HEALTHY


class MaintenanceView(Struct, frozen=True):
    """The maintenance mode, its message in the languages of a reader, scopes in which jobs run, the ServiceLevel."""

    mode: Maintenance | None
    message: Callable[[Sequence[str]], str]
    executing: frozenset[str]
    level: ServiceLevel = ServiceLevel.HEALTHY


ViewReader: TypeAlias = Callable[[], ChartView]
"""Returns the current view of a run; called on a read or a notification only."""
