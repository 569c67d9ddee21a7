"""An object has one form: `--json` of the command line, the HTTP API and the event have the same members and values."""

import json
from typing import Any

import msgspec

from edge.features.telemetry.alarm_publisher import alarm_event
from edge.store import kept_alarms as alarms
from edge.store.client import Store
from tests.cli.calling import Edge
from tests.features.page.serving import Browser
from tests.features.telemetry.test_alarm_requests import raised


def sent(data: object) -> Any:
    """Return data as the payload of an event has them."""
    return json.loads(msgspec.json.encode(data))


async def test_alarm_has_one_form(store: Store, edge: Edge, browser: Browser) -> None:
    alarm = await raised(store, "wrench.temp")
    (change,) = await alarms.newest(store, 1)
    eve = await browser.logged_in("eve")
    (on_page,) = (await eve.get("/api/v1/alarms")).json["alarms"]
    (listed,) = json.loads((await edge("alarms", "list", "--json")).output)
    event = sent(alarm_event("urn:x", "s1", change, 0).data)
    assert json.loads((await edge("alarms", "show", alarm.id, "--json")).output) == listed == on_page == event["alarm"]
    (changed,) = (await eve.get("/api/v1/alarms/history")).json["changes"]
    (history,) = json.loads((await edge("alarms", "history", "--json")).output)
    assert changed == history == event
