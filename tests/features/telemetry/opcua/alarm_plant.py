"""A server with the alarms of a real store, and a client on another stack (node-opcua) that shows them."""

import asyncio
import contextlib
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edge.access.audit_trail import AuditTrail
from edge.config import OpcuaSettings
from edge.features.telemetry.alarm_requests import request_change
from edge.features.telemetry.model.rule import Rule
from edge.features.telemetry.opcua.alarm_feed import AlarmNodes, AlarmSettings, add_alarms, show_alarms
from edge.features.telemetry.opcua.tag_history import TagHistory
from edge.features.telemetry.rules.alarm import AlarmChanged, AlarmEvent, Raise, transition
from edge.foundation.instant import now_ms
from edge.foundation.task_group import background_task
from edge.model.user import Role
from edge.ports.alarm import Alarm, AlarmChangeKind, AlarmNotice, alarm_id
from edge.ports.tag import TagDefinitions
from edge.store import kept_alarms as alarms
from edge.store.client import Store
from edge.store.instance_leases import load_identity
from edge.store.kept_alarms import AlarmChange
from edge.uaserver.namespaces import Namespace
from edge.uaserver.parts import NewServer
from edge.uaserver.space import MachineDescription
from tests.uaserver.running import MACHINES, SETTINGS, served

ROOT = Path(__file__).parents[4]
DEADLINE_S = 60
HOT = Raise(500, {"en": "too hot"}, 81.5)


def condition(alarm: Alarm, path: str = "") -> str:
    """Return the NodeId of a condition or of a node below it, as text."""
    return f"ns={int(Namespace.ALARMS)};s={alarm.id}{f'/{path}' if path else ''}"


async def change(store: Store, subject: str, *events: AlarmEvent, rule: str = "hot", at: int | None = None) -> Alarm:
    """Apply events to the alarm of a subject, each in a commit, as the processor does; return the alarm."""
    key = alarm_id(rule, subject)
    alarm = Alarm(id=key, rule=rule, subject=subject)
    for number, event in enumerate(events):
        before = await alarms.load(store)
        alarm = before.alarms.get(key, alarm)
        result = transition(alarm, event, (at or now_ms()) + number)
        assert isinstance(result, AlarmChanged), result
        alarm = result.alarm
        await store.commit(alarms.save(store.keys, before, [AlarmChange(alarm, result.kind)]))
    return alarm


async def store_many(store: Store, count: int) -> list[Alarm]:
    """Write so many active alarms in a few commits."""
    found = []
    for first in range(0, count, 500):
        made = [_raised(f"tag{number}") for number in range(first, min(first + 500, count))]
        before = await alarms.load(store)
        await store.commit(
            alarms.save(store.keys, before, [AlarmChange(alarm, AlarmChangeKind.RAISED) for alarm in made])
        )
        found += made
    return found


def _raised(subject: str) -> Alarm:
    result = transition(Alarm(id=alarm_id("hot", subject), rule="hot", subject=subject), HOT, 1_000)
    assert isinstance(result, AlarmChanged)
    return result.alarm


@dataclass(frozen=True, slots=True)
class AlarmServer:
    """A server with conditions."""

    endpoint: str
    alarms: AlarmNodes


@contextlib.asynccontextmanager
async def alarm_server(
    store: Store,
    rules: Iterable[Rule] = (),
    role: Role = Role.ENGINEER,
    machines: tuple[MachineDescription, ...] = MACHINES[:1],
    trail: AuditTrail | None = None,
    history: TagHistory | None = None,
    definitions: TagDefinitions | None = None,
    settings: OpcuaSettings = SETTINGS,
) -> AsyncIterator[AlarmServer]:
    """Serve the alarms of a store; anonymous clients have the role."""

    async def request(alarm_id: str, event: AlarmEvent, normal: Alarm | None) -> AlarmNotice:
        return await request_change(store, alarm_id, event, now_ms, normal=normal)

    identity, known = await load_identity(store), definitions or TagDefinitions()
    alarm_settings = AlarmSettings(identity, request, now_ms, store, history, definitions=known)
    added = []

    async def add(new: NewServer) -> None:
        added.append(await add_alarms(new, alarm_settings))

    async with served(settings, machines=machines, role=role, parts=[add], trail=trail) as server:
        (nodes,) = added
        shown = show_alarms(store, nodes, [machine.scope for machine in machines], lambda: rules)
        async with background_task(shown, "alarms"):
            yield AlarmServer(server.endpoint, nodes)


@dataclass
class AlarmClient:
    """The process of the client; `events` are those that it has received."""

    process: asyncio.subprocess.Process
    events: list[dict[str, Any]] = field(default_factory=list)
    received_at: list[float] = field(default_factory=list)

    async def ask(self, what: str, **parameters: Any) -> Any:
        """Send a request to the process and return its answer."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps([what, parameters]).encode() + b"\n")
        while (line := await self._line()).get("done") != what:
            self._keep(line)
        assert "error" not in line, line
        return line["answer"]

    async def event(self, **expected: Any) -> dict[str, Any]:
        """Return the next event with these fields, and forget it with those before it."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                for at, found in enumerate(self.events):
                    if all(found.get(name.replace("__", ".")) == value for name, value in expected.items()):
                        del self.events[: at + 1], self.received_at[:at]
                        return found
                self._keep(await self._line())

    def last_delay_s(self, since: float) -> float:
        """Return the seconds from an instant to the arrival of the event that was returned last."""
        return self.received_at.pop(0) - since

    async def list_until(self, check: Callable[[list[dict[str, Any]]], object]) -> list[dict[str, Any]]:
        """Return the alarm list once it fulfils a condition."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            found: list[dict[str, Any]] = await self.ask("alarms")
            if check(found):
                return found
            assert time.monotonic() < deadline, found
            await asyncio.sleep(0.02)

    def _keep(self, line: dict[str, Any]) -> None:
        assert "event" in line, line
        self.events.append(line["event"])
        self.received_at.append(line["at"] / 1000)

    async def _line(self) -> dict[str, Any]:
        assert self.process.stdout
        async with asyncio.timeout(DEADLINE_S):
            found: dict[str, Any] = json.loads(await self.process.stdout.readline())
            return found


@contextlib.asynccontextmanager
async def alarm_client(endpoint: str) -> AsyncIterator[AlarmClient]:
    """Run the client with one session."""
    installed = ROOT / ".node" / "node_modules"
    assert installed.is_dir(), "run make setup: it installs node-opcua-client"
    process = await asyncio.create_subprocess_exec(
        "node",
        ROOT / "tests" / "uaserver" / "node" / "alarms.js",
        endpoint,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "NODE_PATH": str(installed)},
        limit=1 << 26,
    )
    try:
        client = AlarmClient(process)
        assert await client._line() == {"done": "connected"}  # noqa: SLF001 - the first line is not an answer to a request
        yield client
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
