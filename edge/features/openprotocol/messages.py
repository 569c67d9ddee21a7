"""What an Open Protocol controller sends, as events of a device; its requests, as recorders and the log show them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

import structlog

from edge.equipment.device import DeviceEvents
from edge.features.openprotocol.inbox import ResultInbox
from edge.features.openprotocol.protocol.frame import MidFrame
from edge.features.openprotocol.protocol.mids import Mid, new_message, parse_message
from edge.features.openprotocol.protocol.session import ExchangeListener, KeepResult, OpenProtocolSession
from edge.features.openprotocol.protocol.spindles import parse_spindles
from edge.features.openprotocol.protocol.trace import parse_curve, parse_plot
from edge.foundation.errors import Refused, Unavailable
from edge.model.equipment_traffic import EquipmentRequest, TrafficKind
from edge.station.equipment import StationPort

ACKNOWLEDGEMENTS: Mapping[int, MidFrame] = MappingProxyType(
    {
        Mid.PARAMETER_SET_SELECTED: MidFrame(Mid.PARAMETER_SET_ACKNOWLEDGE),
        Mid.JOB_INFO: MidFrame(Mid.JOB_ACKNOWLEDGE),
        Mid.IDENTIFIER_CHANGED: MidFrame(Mid.IDENTIFIER_ACKNOWLEDGE),
        Mid.ALARM: MidFrame(Mid.ALARM_ACKNOWLEDGE),
        Mid.ALARM_ACKNOWLEDGED: MidFrame(Mid.ALARM_ACKNOWLEDGED_ACKNOWLEDGE),
        Mid.ALARM_STATUS: MidFrame(Mid.ALARM_STATUS_ACKNOWLEDGE),
        Mid.RELAY: MidFrame(Mid.RELAY_ACKNOWLEDGE),
        Mid.TRACE: new_message(Mid.ACCEPTED, mid=Mid.TRACE),
        Mid.TRACE_PARAMETERS: new_message(Mid.ACCEPTED, mid=Mid.TRACE_PARAMETERS),
    }
)
"""The acknowledgement of each message that is acknowledged at once; that of a result waits until it is stored."""

ACKNOWLEDGED_UNREAD: Mapping[int, MidFrame] = MappingProxyType(
    {
        **ACKNOWLEDGEMENTS,
        Mid.RESULT: MidFrame(Mid.RESULT_ACKNOWLEDGE),
        Mid.SPINDLES_RESULT: MidFrame(Mid.SPINDLES_ACKNOWLEDGE),
    }
)
"""The same for messages that cannot be read: without it a controller sends no further one."""


OnResult: TypeAlias = Callable[[Mapping[str, Any]], bool]
"""Handles a result that is not durable yet; returns whether it is to be confirmed when it is in the inbox."""

RefuseIfLost: TypeAlias = Callable[[], Awaitable[None]]
"""Raises NotSent when another gateway works with the controller."""

_RESULTS = frozenset({Mid.RESULT, Mid.SPINDLES_RESULT})

_log = structlog.get_logger(__name__)


def request_reporter(station: StationPort) -> ExchangeListener:
    """Return the listener that reports each request as traffic of the equipment."""
    return partial(_report_request, station)


def described(session: OpenProtocolSession) -> dict[str, Any]:
    """Return what identifies a controller, for the log."""
    known = {name: session.controller.get(name) for name in ("name", "supplier", "software")}
    return known | {
        "link_layer": session.has_link_layer,
        "result_revision": session.revisions.get(Mid.RESULT_SUBSCRIBE),
    }


def _report_request(station: StationPort, message: MidFrame, answer: MidFrame | None, error: str) -> None:
    found = {"answer": f"MID {answer.mid:04d} revision {answer.revision}", **_fields(answer)} if answer else None
    question = f"MID {message.mid:04d} revision {message.revision}"
    arguments = [message.data.decode("latin-1")] if message.data else []
    kind = "device" if error else None
    request = EquipmentRequest(question, arguments, found=found, error=error or None, kind=kind)
    station.report_traffic(TrafficKind.ASKED, request)


def _fields(message: MidFrame) -> dict[str, Any]:
    try:
        return parse_message(message)
    except Refused:
        return {"data": message.data.decode("latin-1")}


def _parsed(message: MidFrame) -> dict[str, Any]:
    match message.mid:
        case Mid.TRACE:
            return {"curve": parse_curve(message.data)}
        case Mid.TRACE_PARAMETERS:
            return parse_plot(message.data)
        case Mid.SPINDLES_RESULT:
            return parse_spindles(message.data)
        case _:
            return parse_message(message)


async def device_events(
    session: OpenProtocolSession,
    inbox: ResultInbox,
    earlier: Sequence[MidFrame],
    on_result: OnResult,
    refuse_if_lost: RefuseIfLost,
    *,
    confirms_at_once: bool,
) -> DeviceEvents:
    """Yield each message of a controller by its fields; `unreadable` is the reason for one that cannot be read.

    `station` and `spindle` are those of its header, `received` is the second at which it came. The `earlier` results,
    of the inbox before this connection, come first: the controller may send them again. Where `on_result` or
    `confirms_at_once` say so, a result is confirmed when it is in the inbox; `kept` is its key there, `confirmed` the
    second. `on_result` is called before, as the store may take seconds: the tool must not stay enabled meanwhile.
    Raises NotSent for a result of a controller that another gateway works with: it is reported by that one.
    """
    for message in earlier:
        marks = {"kept": await inbox.keep(message)}
        yield _event(message, asyncio.get_running_loop().time()) | marks
    async for message in session.messages():
        device_event = _event(message, session.received_at)
        is_result = message.mid in _RESULTS and "unreadable" not in device_event
        is_urgent = is_result and (on_result(device_event) or confirms_at_once)
        if is_result:
            await refuse_if_lost()
        if is_urgent:
            device_event |= await _confirmed(session, inbox, message)
        yield device_event


def _event(message: MidFrame, received: float) -> dict[str, Any]:
    envelope = {"mid": message.mid, "revision": message.revision, "received": received}
    envelope |= {"station": message.station, "spindle": message.spindle}
    try:
        return _parsed(message) | envelope
    except Refused as refusal:
        return {"unreadable": refusal.text, "data": message.data.decode("latin-1")} | envelope


def result_keeper(inbox: ResultInbox, refuse_if_lost: RefuseIfLost) -> KeepResult:
    """Return what keeps the results of a session in an inbox; one that cannot be read is not kept."""

    async def keep(message: MidFrame) -> bool:
        await refuse_if_lost()
        return "unreadable" in _event(message, 0.0) or bool(await _kept(inbox, message))

    return keep


async def _confirmed(session: OpenProtocolSession, inbox: ResultInbox, message: MidFrame) -> dict[str, Any]:
    """Keep a result and confirm it; without the store it is confirmed when it is settled, as the ledger demands."""
    if not (key := await _kept(inbox, message)):
        return {}
    # The link layer has confirmed it when it came.
    at = session.received_at if session.has_link_layer else asyncio.get_running_loop().time()
    await session.send(ACKNOWLEDGED_UNREAD[message.mid])
    return {"kept": key, "confirmed": at}


async def _kept(inbox: ResultInbox, message: MidFrame) -> str:
    """Keep a result; return its key, empty without the store."""
    try:
        return await inbox.keep(message)
    except Unavailable as error:
        _log.warning("result not kept, confirmed later", reason=error.message)
        return ""
