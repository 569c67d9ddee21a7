"""Execute the alarm methods of the MES; the same call again has the same answer and no second effect."""

import msgspec

from edge.features.telemetry.alarm_requests import alarm_event_of, request_change
from edge.foundation.errors import Refused
from edge.foundation.instant import Clock
from edge.model.cloudevent import CloudEvent
from edge.model.isa95 import read_payload
from edge.ports.alarm_message import AlarmCall, AlarmNotice
from edge.store import dedupe
from edge.store.client import Store


async def call_alarm(store: Store, method: str, event: CloudEvent, clock: Clock, dedupe_ms: int) -> AlarmNotice:
    """Apply a method to its alarm and return the alarm after it.

    Raises Refused for a wrong payload, an unknown alarm or a state that does not allow it; Unavailable without the
    store.
    """
    try:
        call = read_payload(event.data, AlarmCall)
    except msgspec.ValidationError as error:
        reason = f"the payload does not have the arguments of {event.type}: {error}."
        raise Refused("invalid_payload", reason, "Send AlarmID and By.") from None
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
