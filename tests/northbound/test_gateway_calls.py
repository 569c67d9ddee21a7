"""The MES switches the maintenance mode; the same event again has no second effect."""

import json
from typing import Any

import pytest

from edge.access.audit_trail import AuditTrail
from edge.foundation.errors import Refused
from edge.model.cloudevent import CloudEvent
from edge.northbound.gateway_calls import MaintenanceCalls
from edge.northbound.reply import languages_of
from edge.store import audit
from edge.store.client import Store

NOW = 1_700_000_000_000


def calls(store: Store) -> MaintenanceCalls:
    async def switched() -> None:
        """Do nothing: no watch is there."""

    return MaintenanceCalls(store, AuditTrail(store, "gw-1", 1000, lambda: NOW), switched, lambda: 2, 60_000)


def event(event_id: str, data: Any = None, **extensions: str) -> CloudEvent:
    return CloudEvent(id=event_id, source="/mes", type="maintenance", extensions=extensions, data=data)


async def test_mode_is_switched_on_shown_and_switched_off(store: Store) -> None:
    asked = {"Message": "{$MaintenanceMessage}", "Until": "2030-01-01T00:00:00Z", "By": "anna"}
    answer = await calls(store).call("On", event("1", asked, acceptlanguage="de"), "topic")
    assert (answer.on, answer.kind, answer.by, answer.running_jobs) == (True, "drain", "anna", 2)
    assert answer.message == "Wartung: es wird keine Arbeit begonnen."
    assert answer.until
    assert answer.until.year == 2030
    assert (await calls(store).call("Show", event("2"), "topic")).on
    assert not (await calls(store).call("Off", event("3"), "rpc")).on
    records = [json.loads(sealed_record.text) async for sealed_record in audit.read_all(store)]
    assert [(record["kind"], record["action"], record["user"]) for record in records] == [
        ("mes.call", "maintenance on", "anna"),
        ("rpc.call", "maintenance off", "/mes"),
    ]


async def test_repeated_event_does_not_switch_again(store: Store) -> None:
    on = event("1")
    await calls(store).call("On", on, "topic")
    await calls(store).call("Off", event("2"), "topic")
    assert not (await calls(store).call("On", on, "topic")).on


@pytest.mark.parametrize(
    "data", [7, {"Now": "yes"}, {"Until": "tomorrow"}, {"Until": "2001-01-01T00:00:00Z"}, {"Message": "x" * 1001}]
)
async def test_wrong_arguments_are_refused_with_their_reason(store: Store, data: object) -> None:
    with pytest.raises(Refused) as refused:
        await calls(store).call("On", event("1", data), "topic")
    assert refused.value.kind == "invalid_payload"
    assert not (await calls(store).call("Show", event("2"), "topic")).on


def test_languages_are_read_from_the_acceptlanguage_attribute() -> None:
    assert languages_of(event("1", acceptlanguage="fr;q=0.1, de")) == ("de", "fr")
    assert languages_of(event("1")) == ()
