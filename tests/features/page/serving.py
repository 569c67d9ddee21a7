"""Serve the station page of a plant, and send it requests byte by byte."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from edge import __version__
from edge.access.audit_trail import AuditTrail
from edge.access.login import Users
from edge.access.users import Token, User, digest, new_token, public_user, write_user
from edge.access.web_audit import WebAudit
from edge.config import GatewaySettings, MqttEquipmentSettings, OperationsSettings, Settings, UsersSettings
from edge.features.admin.administration import Administration
from edge.features.page.caller import identify
from edge.features.page.events import EventHub
from edge.features.page.gateway_models import LogLine
from edge.features.page.models import Status
from edge.features.page.panels import Panels
from edge.features.page.recipe_check import check_recipe
from edge.features.page.recipe_models import RecipeResult
from edge.features.page.server import ConnectionBounds, WebAddress, build_app, serve
from edge.features.page.services import GatewayTools, WebServices
from edge.features.page.sessions import WebSessions
from edge.features.recipes.desk import Desk
from edge.features.recipes.settings import RecipesSettings
from edge.features.recipes.workbench import ask_here
from edge.features.simulator.script import Script, parse_script
from edge.features.simulator.virtual_simulation import simulate
from edge.features.telemetry.model.api_models import ControlChartView
from edge.foundation.instant import now_ms
from edge.foundation.task_group import background_task
from edge.model.certificate import PublicCertificate
from edge.model.equipment_connection import ConnectionState
from edge.model.equipment_health import EquipmentHealth, OpenSafing
from edge.model.finding import HealthFinding, Level
from edge.model.plant import PublicMaintenance
from edge.model.user import PublicUser, Role
from edge.ports.sample_lines import Sample
from edge.ports.tag import TagDefinition, TagDefinitions
from edge.station.active_runs import ActiveRuns
from edge.station.intervene import intervene
from edge.store.client import Store
from tests.passwords import CHEAP_HASH, PASSWORD
from tests.station.plant import PHOTO, SCOPE, TIGHTEN, Plant
from tests.store.test_store_state import line

IN_PATHS = {
    "job": "J1",
    "alarm": "a1",
    "flow": "flow",
    "operation": "o1",
    "scope": "station-1",
    "recipe": "linear",
    "revision": "released",
    "draft": "x",
    "tag": "t",
    "rule": "r1",
    "subject": "x",
    "trace": "0" * 64,
    "file": "0" * 64,
    "channel": "0",
    "prompt": "x",
    "result": "x",
    "equipment": "wrench",
    "backup": "x",
}
"""An example of each parameter of a path."""
ATTACK = "<script>alert(1)</script>/'\"&#"
SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
TOKEN = new_token()
_STATUS = Status(
    gateway="edge",
    version=__version__,
    line="1 job at work",
    problems="",
    work_waits="",
    scopes=(SCOPE,),
    active_runs=0,
    maintenance=PublicMaintenance(on=False),
)
SETTINGS = Settings(
    gateway=GatewaySettings(scopes=(SCOPE,)),
    users=UsersSettings(file="/nonexistent/users"),
    operations=OperationsSettings(directory="/dev/null/operations"),
    southbound={"wrench": MqttEquipmentSettings(kind="mqtt", type_ids=(TIGHTEN,))},
)
OVEN = TagDefinition("oven.heat", unit="CEL", description="Heat of the oven")
NO_PANELS = Panels()
TRUSTED: list[str] = []
_FINDING = HealthFinding(subject="store", level=Level.WARNING, found="<b>", advice="look")
_LINE = LogLine(at="1970-01-01T00:00:00.000Z", level="info", text="job started <b>")
_REJECTED = PublicCertificate(
    state="rejected", thumbprint="A" * 40, subject="CN=<b>", applications=(), expires="2030-01-01"
)


async def _refresh() -> None:
    pass


async def _people() -> tuple[PublicUser, ...]:
    return (public_user(User("eve", Role.OBSERVER, ""), ()),)


async def _examine() -> tuple[HealthFinding, ...]:
    return (_FINDING,)


async def _certificates() -> tuple[PublicCertificate, ...]:
    return (_REJECTED,)


async def _trust(thumbprint: str) -> str:
    TRUSTED.append(thumbprint)
    return "CN=<b>"


async def _simulate(recipe: object, script: object) -> dict[str, Any]:
    return simulate(recipe, parse_script(script) if script is not None else Script()).as_json()


class FakeTrends:
    """A trend of two points, and one control chart."""

    async def points(self, tag: str, last: Sample | None) -> tuple[tuple[int, float], ...]:
        """Return two points."""
        return (1000, 1.5), (2000, 2.5)

    async def control_charts(self, role: Role) -> tuple[ControlChartView, ...]:
        """Return one chart."""
        return (
            ControlChartView(
                rule="r1",
                subject="<b>/x",
                mean=2.0,
                lower=1.0,
                upper=3.0,
                points=(1.5, 3.5),
                is_out=True,
                is_incapable=False,
                is_learning=False,
            ),
        )


class FakeTelemetry:
    """Telemetry with a definition of one tag."""

    trends = FakeTrends()
    tags = TagDefinitions((OVEN, TagDefinition(tag="dose", role="operator")))


async def _check(recipe: object, active: Sequence[str], language: str) -> RecipeResult:
    return check_recipe(recipe, active, language)


async def _close() -> None:
    """End nothing: no process was started."""


TOOLS = GatewayTools(_examine, lambda: (_LINE,), _certificates, _trust, _check, _simulate, _people, _refresh, _close)
WRENCH = EquipmentHealth(
    name="wrench",
    kind="mqtt",
    connected=True,
    last_seen=1_700_000_000_000,
    connection=ConnectionState(connected=True, since=1_700_000_000_000),
    open_safing=(OpenSafing(what="stop", since=1_700_000_000_000),),
)


def write_people(file: Path) -> Users:
    """Write an observer, an operator with a token, an engineer, and an operator with a second factor."""
    write_user(file, User("eve", Role.OBSERVER, CHEAP_HASH))
    write_user(file, User("alice", Role.OPERATOR, CHEAP_HASH, tokens=(Token("t", "99991231", digest(TOKEN)),)))
    write_user(file, User("max", Role.ENGINEER, CHEAP_HASH))
    write_user(file, User("tom", Role.OPERATOR, CHEAP_HASH, SECRET))
    return Users(file)


def desk_at(store: Store, **of_recipes: object) -> Desk:
    """Return the desk of recipes on a store, with settings of `[recipes]`."""
    section = msgspec.convert(of_recipes, RecipesSettings)
    settings = Settings(gateway=GatewaySettings(scopes=(SCOPE,)), sections={"recipes": section})
    return Desk(store, settings, ask_here)


def services_of(
    plant: Plant,
    users: Users,
    *,
    is_kiosk: bool = False,
    is_tls: bool = False,
    most_requests: int = 300,
    panels: Panels = NO_PANELS,
    ports: Mapping[str, object] = {},
) -> WebServices:
    """Return what the page of a plant works with; `ports` are those of features in addition to telemetry."""
    events = EventHub(plant.store, (SCOPE,))
    audit = WebAudit(AuditTrail(plant.store, "edge", 1000, now_ms))
    return WebServices(
        active_jobs=ActiveRuns(plant.runs, (SCOPE,)).loaded.values,
        jobs_clock=plant.runs.clock,
        equipment_by_type={TIGHTEN: "wrench", PHOTO: "camera"},
        gateway="edge",
        scopes=(SCOPE,),
        store=plant.store,
        jobs=plant.jobs,
        intervene=partial(intervene, plant.runs, dedupe_ms=60_000),
        status=lambda _: _STATUS,
        equipment=lambda: (WRENCH,),
        users=users,
        sessions=WebSessions(now_ms, 900, 28_800, users.role_of, most_requests=most_requests),
        events=events,
        notify=events.publish,
        ports={
            "telemetry": FakeTelemetry(),
            "recipes": desk_at(plant.store),
            "admin": Administration(SETTINGS),
            **ports,
        },
        audit=audit,
        identify=partial(identify, users, audit),
        is_badge=users.has_badge,
        recognizes_badge=users.recognizes_badge,
        clock=plant.runs.clock,
        is_kiosk=is_kiosk,
        is_tls=is_tls,
        panels=panels,
        tools=TOOLS,
        manual=(),
        store_state=line,
    )


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as it was received."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as data."""
        return json.loads(self.body)

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()


@dataclass(frozen=True, slots=True)
class Browser:
    """A client that sends what it is asked to; `cookie` is that of its login."""

    host: str
    port: int
    cookie: str = ""
    tls: ssl.SSLContext | None = None

    @property
    def origin(self) -> str:
        """The origin of the page."""
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection."""
        return await asyncio.open_connection(self.host, self.port, ssl=self.tls)

    async def get(self, path: str, **headers: str) -> Reply:
        """Read a page."""
        return await self.send("GET", path, headers)

    async def post(self, path: str, content: object, **headers: str) -> Reply:
        """Send JSON as the page does."""
        sent = {"origin": self.origin, "content-type": "application/json"} | headers
        return await self.send("POST", path, sent, json.dumps(content).encode())

    async def send(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> Reply:
        """Send one request on a connection of its own; an empty header is left out."""
        sent = {"host": f"{self.host}:{self.port}", "connection": "close"}
        if self.cookie:
            sent["cookie"] = self.cookie
        if body:
            sent["content-length"] = str(len(body))
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items() if value)
        return await self.exchange(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body)

    async def exchange(self, request: bytes) -> Reply:
        """Send bytes and read the answer to its end."""
        reader, writer = await self.connect()
        async with asyncio.timeout(60):
            writer.write(request)
            try:
                return parse(await reader.read())
            finally:
                writer.transport.abort()

    async def logged_in(self, name: str, code: str = "") -> "Browser":
        """Return this client after a login."""
        reply = await self.post("/api/v1/session", {"name": name, "password": PASSWORD, "code": code})
        assert reply.status == 200, reply
        return Browser(self.host, self.port, reply.headers["set-cookie"].partition(";")[0], self.tls)


def _unchunked(body: bytes) -> bytes:
    """Return the content of chunks (RFC 9112, 7.1)."""
    content = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        content, body = content + body[: int(size, 16)], body[int(size, 16) + 2 :]
    return content


def parse(received: bytes) -> Reply:
    """Parse an answer."""
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    if headers.get("Transfer-Encoding") == "chunked":
        body = _unchunked(body)
    return Reply(int(first.split()[1]), headers, body)


@asynccontextmanager
async def serving(
    services: WebServices, bounds: ConnectionBounds | None = None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Browser]:
    """Serve a page on a free port of this host for the length of the block."""
    limits = bounds or ConnectionBounds(64, 64)
    async with (
        background_task(services.events.run(), "events"),
        serve(build_app(services), WebAddress("127.0.0.1", 0, tls), limits) as url,
    ):
        yield Browser("127.0.0.1", int(url.rstrip("/").rpartition(":")[2]))
