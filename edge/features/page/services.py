"""The parts of the gateway that the page and its API work with."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from msgspec import Struct

from edge.access.login import Users
from edge.features.page.audit import WebAudit
from edge.features.page.events import EventHub
from edge.features.page.gateway_models import CertificateView, LogLine
from edge.features.page.models import ControlChartView, Status
from edge.features.page.recipe_models import RecipeResult
from edge.features.page.result_views import TraceReader
from edge.features.page.sessions import WebSessions
from edge.foundation.instant import Clock
from edge.model.equipment_health import EquipmentHealth
from edge.model.finding import HealthFinding
from edge.model.user import PublicUser
from edge.ports.sample_lines import Sample
from edge.ports.tag import TagDefinition
from edge.station.intervene import InterventionRequest
from edge.station.job_call import CallAnswer
from edge.station.jobs import JobService
from edge.store.client import Store
from edge.store.store_state import StoreState

if TYPE_CHECKING:
    from edge.features.flows.cycle_service import FlowService


DefinitionOf: TypeAlias = Callable[[str], TagDefinition | None]
"""Returns the definition of a tag; None without one."""


CheckRecipe: TypeAlias = Callable[[Any, Sequence[str]], Awaitable[RecipeResult]]
"""Returns the faults and the chart of a recipe, with marks at some active steps."""


class GatewayTools(Struct, frozen=True):
    """What the page asks of the machine; `trust` takes the thumbprint of a rejected certificate.

    `simulate` takes a recipe without faults and a script or None, and returns what `edge simulate --json` prints.
    """

    examine: Callable[[], Awaitable[tuple[HealthFinding, ...]]]
    log: Callable[[], Sequence[LogLine]]
    certificates: Callable[[], Awaitable[tuple[CertificateView, ...]]]
    trust: Callable[[str], Awaitable[str]]
    check: CheckRecipe
    simulate: Callable[[Any, Any], Awaitable[dict[str, Any]]]
    people: Callable[[], Awaitable[tuple[PublicUser, ...]]]
    refresh_mode: Callable[[], Awaitable[None]]
    close: Callable[[], Awaitable[None]]
    """Ends the processes that the page has started."""


class TrendSource(Protocol):
    """The trends of tags and the control charts of rules."""

    async def points(self, tag: str, last: Sample | None) -> tuple[tuple[int, float], ...]:
        """Return the newest points of a tag, in milliseconds and values; `last` is its last sample."""
        ...

    async def control_charts(self) -> tuple[ControlChartView, ...]:
        """Return the control charts that have points."""
        ...


class WebServices(Struct, frozen=True):
    """What requests read and change; `status` takes the languages of the caller, the preferred one first."""

    gateway: str
    scopes: tuple[str, ...]
    store: Store
    jobs: JobService
    intervene: Callable[[InterventionRequest], Awaitable[CallAnswer]]
    status: Callable[[Sequence[str]], Status]
    equipment: Callable[[], tuple[EquipmentHealth, ...]]
    users: Users
    sessions: WebSessions
    events: EventHub
    audit: WebAudit
    clock: Clock
    is_kiosk: bool
    is_tls: bool
    tools: GatewayTools
    flows: "FlowService | None" = None
    """None where flows are off."""
    trends: TrendSource | None = None
    """None where telemetry is off."""
    definition_of: DefinitionOf = lambda _: None
    store_state: Callable[[], StoreState | None] = lambda: None
    """The last state of the servers of the store; None before the first reading."""
    traces: TraceReader | None = None
    """None where no traces are stored."""
