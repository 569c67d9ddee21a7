"""What clients are shown, as it stands at an instant, in plain values; instants and times are milliseconds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from edge.model.equipment_health import EquipmentHealth


@dataclass(frozen=True, slots=True)
class StepView:
    """A step: X, T and how often it was active (IEC 61131-3, 6.7.2)."""

    active: bool = False
    elapsed_ms: int = 0
    count: int = 0


@dataclass(frozen=True, slots=True)
class ActionView:
    """An action of a step: how its latest activation stands."""

    state: str
    attempt: int = 0
    result: Any = None
    deadline: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class ChartView:
    """A run: its recipe with every step and action of it, where it stands, and what it waits for."""

    recipe: str
    state: str
    started_at: int | None
    steps: Mapping[str, StepView]
    actions: Mapping[str, ActionView]
    waiting: tuple[str, ...] = ()
    error: str = ""
    deadline: int | None = None


@dataclass(frozen=True, slots=True)
class GatewayView:
    """How the gateway is: one line for people, the memory of its store in bytes (0 is no limit), its equipment."""

    status: str
    memory_used: int
    memory_limit: int
    is_nearly_full: bool
    equipment: Mapping[str, EquipmentHealth]


ViewReader: TypeAlias = Callable[[], ChartView]
"""Draws the picture of a run as it stands now: called when somebody looks, and only then."""
