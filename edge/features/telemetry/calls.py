"""The calls of the MES about alarms; alarms of other gateways on the store are answered also where telemetry is off."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial

from edge.app.feature import Opened
from edge.app.parts import GatewayParts, Works
from edge.features.telemetry.alarm_requests import call_alarm
from edge.foundation.instant import now_ms
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import ALARM_METHOD_TYPE
from edge.northbound.reply import CallEffect, Handler, Reply
from edge.ports.alarm import ALARM_METHODS


async def open_alarm_calls(_stack: AsyncExitStack, core: GatewayParts, _works: Works) -> Opened:
    """Answer the calls; nothing else of telemetry is opened."""
    return Opened(calls=alarm_calls(core))


def alarm_calls(core: GatewayParts) -> Mapping[str, Handler]:
    """Return the calls by their CloudEvents type."""
    return {ALARM_METHOD_TYPE.format(method): partial(_answer, core, method) for method in ALARM_METHODS}


async def _answer(core: GatewayParts, method: str, event: CloudEvent, _origin: str) -> Reply:
    notice = await call_alarm(core.store, method, event, now_ms, core.settings.retention.dedupe * 1000)
    return Reply(notice, change=CallEffect(method, notice.alarm_id, notice.comment, notice.by))
