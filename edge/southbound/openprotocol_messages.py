"""What an Open Protocol controller sends, as events of a device; its requests, as recorders and the log show them."""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from edge.errors import Refused
from edge.links.openprotocol_frame import MidFrame
from edge.links.openprotocol_mids import Mid, new_message, parse_message
from edge.links.openprotocol_session import ExchangeListener, OpenProtocolSession
from edge.links.openprotocol_spindles import parse_spindles
from edge.links.openprotocol_trace import parse_curve, parse_plot
from edge.model.equipment_traffic import EquipmentRequest, TrafficKind
from edge.southbound.device import DeviceEvents
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


async def device_events(session: OpenProtocolSession) -> DeviceEvents:
    """Yield each message of a controller by its fields; `unreadable` is the reason for one that cannot be read.

    `station` and `spindle` are those of its header, `received` is the second at which it came.
    """
    async for message in session.messages():
        found = {"mid": message.mid, "revision": message.revision, "received": session.received_at}
        found |= {"station": message.station, "spindle": message.spindle}
        try:
            yield _parsed(message) | found
        except Refused as refusal:
            yield {"unreadable": refusal.message, "data": message.data.decode("latin-1")} | found
