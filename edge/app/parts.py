"""The parts of the gateway that its adapters share, and the session with a broker that each opens."""

import contextlib
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from edge.access.audit_trail import AuditTrail, CarriedRecords
from edge.access.components import Describe
from edge.access.login import StoredMemory, Users
from edge.access.mode import ModeWatch
from edge.app.feature import Opened
from edge.app.health import Health
from edge.config import MqttSettings, Settings
from edge.foundation.task_group import background_task
from edge.links.mqtt import MqttSession, keep_session
from edge.links.mqtt_broker import RECEIVE_MAXIMUM
from edge.links.receive_queue import FLOOD_LIMITS, FloodLimits
from edge.model.user import Role
from edge.station.active_runs import ActiveRuns
from edge.station.clock import SteadyClock, StoreTime
from edge.station.direct_commands import DirectCommands
from edge.station.equipment_watch import EquipmentWatch
from edge.station.instance import Gate, Instance, TaskFactory
from edge.station.jobs import AcceptedJobs, JobService
from edge.station.own_starts import OwnStarts
from edge.station.retention import RetentionPolicy, retention_policy
from edge.station.runs import Runs
from edge.station.sender import Dispatch
from edge.station.settings import StationSettings
from edge.store.background import restart_on_defect
from edge.store.client import Store
from edge.store.generation import JobsClock


class Works(Struct, frozen=True):
    """What works at the station; `users` is None without a server that people log in to."""

    jobs: JobService
    dispatch: Dispatch
    settings: StationSettings
    users: Users | None
    settings_file: Path | None
    describe: Describe


class GatewayMemory(Struct):
    """What a process keeps when it opens its gateway again: after a failover the store is over with its primary."""

    own_starts: OwnStarts = field(default_factory=OwnStarts)
    accepted_jobs: AcceptedJobs = field(default_factory=AcceptedJobs)
    audit_records: CarriedRecords = field(default_factory=dict)
    jobs_clock: JobsClock | None = None
    """That of the gateway which was open before."""


class OpenGateway(Struct, frozen=True):
    """A gateway at work: one line that names what is served, its store, and the clock of its jobs."""

    serving: str
    store: Store
    clock: SteadyClock


class GatewayParts(Struct, frozen=True):
    """The parts that adapters share: store, runs, equipment and health."""

    settings: Settings
    store: Store
    instance: Instance
    runs: Runs
    active_runs: ActiveRuns
    watch: EquipmentWatch
    health: Health
    clock: SteadyClock
    store_time: StoreTime
    direct_commands: DirectCommands
    trail: AuditTrail
    mode: ModeWatch
    ports: dict[str, Any] = field(default_factory=dict)
    """What features use of each other, by the name of the feature; only of those that are open."""
    opened: list[Opened] = field(default_factory=list)
    """What the open features add."""

    async def keep_running(self, stack: AsyncExitStack, name: str, work: TaskFactory) -> None:
        """Run work in the background until the stack closes; restart it after a defect.

        await core.keep_running(stack, "samples", queue.run)
        """
        await stack.enter_async_context(background_task(restart_on_defect(self.store.defects, name, work), name))

    async def keep_running_while(self, stack: AsyncExitStack, gate: Gate, name: str, work: TaskFactory) -> None:
        """Run work in the background, as `keep_running` does, whenever a gate is open."""
        kept = partial(restart_on_defect, self.store.defects, name, work)
        await stack.enter_async_context(background_task(gate.run_while_open(kept, name), f"gate of {name}"))

    @property
    def retention(self) -> RetentionPolicy:
        """How long ended jobs and their results are kept; without a broker no delivery can be confirmed."""
        return retention_policy(self.settings)

    @property
    def scopes(self) -> tuple[str, ...]:
        """The served scopes."""
        return self.settings.gateway.scopes

    @property
    def source(self) -> str:
        """The CloudEvents source of published events."""
        return f"urn:microdcs-edge:{self.settings.gateway.name}"


_CONNECT_WITHIN_S = 2.0
"""How long a start waits for the first attempt to reach a broker; without it the gateway starts degraded."""


async def open_session(
    stack: contextlib.AsyncExitStack,
    core: GatewayParts,
    name: str,
    mqtt: MqttSettings,
    largest_packet: int,
    receive_maximum: int = RECEIVE_MAXIMUM,
    flood: FloodLimits = FLOOD_LIMITS,
) -> MqttSession:
    """Open the MQTT session of one adapter; each has its own client id, as a broker allows one session per id."""
    base = core.settings.mqtt.client_id or core.settings.gateway.name
    client_id = f"{base}-{name}" if name else base
    session = await stack.enter_async_context(
        keep_session(mqtt, client_id, largest_packet=largest_packet, receive_maximum=receive_maximum, flood=flood)
    )
    await session.wait_attempted(_CONNECT_WITHIN_S)
    return session


def open_users(core: GatewayParts) -> Users:
    """Return the users of a gateway: the servers share them, and with them the delay of logins after failures."""
    roles = [Role[role.upper()] for role in core.settings.users.totp]
    return Users(Path(core.settings.users_file), memory=StoredMemory(core.store), totp_roles=roles)
