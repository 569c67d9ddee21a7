"""The calls of the MES about alarms, each executed once."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial

import msgspec

from edge.app.feature import Opened
from edge.app.parts import GatewayParts, Works
from edge.features.telemetry.alarm_requests import alarm_event_of, request_change
from edge.foundation.errors import Refused
from edge.foundation.instant import Clock, now_ms
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import ALARM_METHOD_TYPE
from edge.northbound.reply import CallEffect, Handler, Reply, arguments_of
from edge.ports.alarm import ALARM_METHODS, AlarmCall, AlarmNotice
from edge.store import dedupe
from edge.store.client import Store


async def call_alarm(store: Store, method: str, event: CloudEvent, clock: Clock, dedupe_ms: int) -> AlarmNotice:
    """Apply a method to its alarm and return the alarm after it.

    Raises Refused for a wrong payload, an unknown alarm or a state that does not allow it; Unavailable without the
    store.
    """
    call = arguments_of(event, AlarmCall, "Send AlarmID and By.")
    known = await dedupe.load_answer(store, event.source, event.id)
    if known is not None:
        return dedupe.decode_answer(known, AlarmNotice)

    def mark(notice: AlarmNotice) -> str:
        return msgspec.json.encode(notice).decode()

    try:
        return await request_change(
            store,
            call.alarm_id,
            alarm_event_of(method, call, clock()),
            clock,
            lambda notice: dedupe.mark(store.keys, event.source, event.id, mark(notice), dedupe_ms),
        )
    except Refused:
        # Each gateway of the store receives the call: another one may have executed it meanwhile.
        known = await dedupe.load_answer(store, event.source, event.id)
        if known is None:
            raise
        return dedupe.decode_answer(known, AlarmNotice)


async def open_alarm_calls(_stack: AsyncExitStack, core: GatewayParts, _works: Works) -> Opened:
    """Answer the calls about alarms of other gateways on the store; nothing else of telemetry is opened."""
    return Opened(calls=alarm_calls(core))


def alarm_calls(core: GatewayParts) -> Mapping[str, Handler]:
    """Return the calls by their CloudEvents type."""
    return {ALARM_METHOD_TYPE.format(method): partial(_answer, core, method) for method in ALARM_METHODS}


async def _answer(core: GatewayParts, method: str, event: CloudEvent, _origin: str) -> Reply:
    notice = await call_alarm(core.store, method, event, now_ms, core.settings.retention.dedupe * 1000)
    return Reply(notice, change=CallEffect(method, notice.alarm_id, notice.comment, notice.by))
