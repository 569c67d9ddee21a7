"""The parts of the gateway that the page and its API work with."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from edge.access.login import Users
from edge.app.page_part import PageServices
from edge.features.page.events import EventHub
from edge.features.page.gateway_models import LogLine
from edge.features.page.models import Status
from edge.features.page.panels import Panels
from edge.features.page.recipe_models import RecipeResult
from edge.features.page.sessions import WebSessions
from edge.foundation.instant import Clock
from edge.model.certificate import PublicCertificate
from edge.model.equipment_health import EquipmentHealth
from edge.model.finding import HealthFinding
from edge.model.user import PublicUser
from edge.station.decision import LoadedJob
from edge.station.intervene import InterventionRequest
from edge.station.job_call import CallAnswer
from edge.station.jobs import JobService
from edge.store.store_state import StoreState

CheckRecipe: TypeAlias = Callable[[Any, Sequence[str], str], Awaitable[RecipeResult]]
"""Returns the faults of a recipe in a language, and its chart with marks at the active steps."""
"""Returns the faults and the chart of a recipe, with marks at some active steps."""


class GatewayTools(Struct, frozen=True):
    """What the page asks of the machine; `trust` takes the thumbprint of a rejected certificate.

    `simulate` takes a recipe without faults and a script or None, and returns what `edge simulate --json` prints.
    """

    examine: Callable[[], Awaitable[tuple[HealthFinding, ...]]]
    log: Callable[[], Sequence[LogLine]]
    certificates: Callable[[], Awaitable[tuple[PublicCertificate, ...]]]
    trust: Callable[[str], Awaitable[str]]
    check: CheckRecipe
    simulate: Callable[[Any, Any], Awaitable[dict[str, Any]]]
    people: Callable[[], Awaitable[tuple[PublicUser, ...]]]
    refresh_mode: Callable[[], Awaitable[None]]
    close: Callable[[], Awaitable[None]]
    """Ends the processes that the page has started."""


class WebServices(PageServices, frozen=True):
    """What requests read and change; `status` takes the languages of the caller, the preferred one first."""

    gateway: str
    scopes: tuple[str, ...]
    jobs: JobService
    intervene: Callable[[InterventionRequest], Awaitable[CallAnswer]]
    status: Callable[[Sequence[str]], Status]
    equipment: Callable[[], tuple[EquipmentHealth, ...]]
    active_jobs: Callable[[], Iterable[LoadedJob]]
    """Returns the jobs that run."""
    jobs_clock: Clock
    """The clock by which jobs wait; `clock` is that of the machine."""
    equipment_by_type: Mapping[str, str]
    """The name of the equipment for the type of each command and event."""
    users: Users
    sessions: WebSessions
    events: EventHub
    is_kiosk: bool
    is_tls: bool
    panels: Panels
    tools: GatewayTools
    manual: Sequence[Path]
    """The folders in which the manual may be."""
    reason_for: Sequence[str] = ()
    """The methods for which a person states a reason."""
    store_state: Callable[[], StoreState | None] = lambda: None
    """The last state of the servers of the store; None before the first reading."""
