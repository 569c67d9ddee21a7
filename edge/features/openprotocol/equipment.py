"""Tightening controllers with Open Protocol: a command enables the tool for one tightening and returns its result.

The operator triggers the tool. The identifier (VIN) of the result has a mark of the command: with it the gateway finds
the result again after a lost connection or a restart. By default, a tool is never enabled again for a command whose
result cannot be found: its outcome is unknown.
"""

import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import datetime
from functools import partial

from edge.app.feature import Opened
from edge.app.parts import GatewayParts
from edge.config import Settings
from edge.equipment.device import Device, DeviceEvents
from edge.equipment.ping import PingResult
from edge.equipment.remembered_text import RememberedText, memory_of
from edge.equipment.repetition import StartPolicy, chosen_repetition
from edge.equipment.unclaimed import LateResults
from edge.features.openprotocol.collector import LAST_RESULT, TighteningCollector
from edge.features.openprotocol.controller_opening import LEARNT_REVISIONS, ControllerOpening, LearntRevisions
from edge.features.openprotocol.curves import ResultCurves
from edge.features.openprotocol.device import OpenProtocolTimes, TighteningDevice, ToolEvents
from edge.features.openprotocol.equipment_lease import EquipmentLease
from edge.features.openprotocol.inbox import ResultInbox
from edge.features.openprotocol.leased_equipment import LeasedEquipment, LeasedMemory, LeaseOf, only_lease, open_leased
from edge.features.openprotocol.makes import make_of
from edge.features.openprotocol.messages import device_events, request_reporter, result_keeper
from edge.features.openprotocol.programs import ParameterSets
from edge.features.openprotocol.protocol.mids import Mid
from edge.features.openprotocol.protocol.session import (
    ExchangeListener,
    KeepResult,
    OpenProtocolSession,
    PermitRequest,
    open_openprotocol,
)
from edge.features.openprotocol.settings import OpenProtocolSettings, address_of
from edge.features.openprotocol.state import ToolState
from edge.features.openprotocol.tool import TighteningTool, lease_checker
from edge.foundation.task_group import background_task
from edge.sfc.signal import Phase
from edge.station.equipment import Repetition, StationPort

_TIMES = OpenProtocolTimes()


def _local_now() -> datetime:
    return datetime.now().astimezone().replace(microsecond=0, tzinfo=None)


def _session_opener(
    settings: OpenProtocolSettings,
    times: OpenProtocolTimes,
    on_request: ExchangeListener,
    keep: KeepResult,
    permit: PermitRequest,
) -> Callable[..., AbstractAsyncContextManager[OpenProtocolSession]]:
    """Return what opens a session with the learnt `revisions`."""
    return partial(
        open_openprotocol,
        *address_of(settings),
        times=times.session,
        link_layer=settings.link_layer == "auto",
        on_request=on_request,
        keep=keep,
        permit=permit,
    )


def open_openprotocol_equipment(
    name: str,
    settings: OpenProtocolSettings,
    station: StationPort,
    scopes: Collection[str],
    lease_of: LeaseOf = only_lease,
    *,
    times: OpenProtocolTimes = _TIMES,
    now: Callable[[], datetime] = _local_now,
) -> AbstractAsyncContextManager[LeasedEquipment]:
    """Connect to a controller for the length of the block, and reconnect while it is unavailable.

    Of the gateways that share a scope, one connects: a tool has one queue of commands, and a result one receiver.
    """
    state, curves = ToolState(), ResultCurves()
    place = "{}:{}".format(*address_of(settings))
    lease = lease_of(scopes, place)
    repetition = chosen_repetition(settings, Repetition.ONCE)
    events = ToolEvents(name, settings.url, settings.events, station, next(iter(scopes)))
    reporter = LateResults(name, next(iter(scopes)), station)
    own = memory_of(name, place)
    texts = LeasedMemory(station, lease)
    memory = RememberedText(texts, own, LAST_RESULT)
    inbox = ResultInbox(partial(texts.recall, own), partial(texts.remember, own), station.gateway)
    learnt = LearntRevisions(settings, RememberedText(texts, own, LEARNT_REVISIONS))
    starts, correlation = StartPolicy(station, repetition), settings.correlation
    new_device = partial(TighteningDevice, correlation=correlation, starts=starts, times=times)
    keep = result_keeper(inbox, lease.refuse_if_lost)
    opened = _session_opener(settings, times, request_reporter(station), keep, lease_checker(lease))

    @asynccontextmanager
    async def connect() -> AsyncIterator[tuple[Device, DeviceEvents]]:
        nonlocal state
        if lease.has_changed:
            # Another gateway may have received results since this process did.
            state = ToolState()
            await inbox.take_over()
        for command in await station.outstanding(scopes, settings.type_ids):
            # A result may come before its command is offered again.
            if command.phase is Phase.START:
                state.remember(command, settings.correlation)
        # Before the connection: results that come on it are not earlier ones.
        earlier = await inbox.unsettled()
        async with opened(revisions=await learnt.load()) as session:
            make, has_several = make_of(session.controller), settings.spindles == "several"
            session.set_keep_alive(make.keep_alive)
            tool = TighteningTool(session, correlation=settings.correlation, locks=settings.lock == "on")
            results = TighteningCollector(
                session,
                state,
                reporter,
                memory,
                inbox,
                correlation=settings.correlation,
                counts=make.counts_results and not has_several,
                acknowledgement=Mid.SPINDLES_ACKNOWLEDGE if has_several else Mid.RESULT_ACKNOWLEDGE,
                on_own=events.report_result,
            )
            await results.restore()
            programs = ParameterSets(session)
            opening = ControllerOpening(session, make, settings, tool, programs, learnt, now)
            device = new_device(session, tool, results, state.ledger, curves, events, programs, opening)
            async with background_task(device.run(), f"tool of {name}"):
                at_once = session.has_link_layer or settings.traces == "on"
                received, refuse_if_lost = device.handle_received, lease.refuse_if_lost
                yield device, device_events(session, inbox, earlier, received, refuse_if_lost, confirms_at_once=at_once)

    return open_leased(name, settings.url, settings.type_ids, station, scopes, connect, repetition, lease)


async def ping(_name: str, section: OpenProtocolSettings, _settings: Settings) -> PingResult:
    """Start the communication on a session of its own, and stop it."""
    began = time.perf_counter()
    async with open_openprotocol(*address_of(section), link_layer=False) as session:
        seconds = time.perf_counter() - began
        return PingResult(answers=True, detail=f"{session.controller['name']!r} has started", seconds=seconds)


async def prepare_openprotocol(_stack: AsyncExitStack, core: GatewayParts) -> Opened:
    """Return how a controller is leased: several gateways may share one."""
    return Opened(equipment={"openprotocol": (partial(EquipmentLease, core.store),)})
