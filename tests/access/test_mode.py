"""The maintenance mode is switched with its audit record, in one commit."""

import asyncio
import json

import pytest

from edge.access.audit_trail import find_faults
from edge.access.mode import MAX_MESSAGE, ModeRequest, SwitchOff, SwitchOn, decide_mode, mode_in_force, switch_mode
from edge.foundation.errors import Refused
from edge.model.audit import AuditRecord
from edge.model.plant import DEFAULT_MESSAGE, Maintenance, MaintenanceKind
from edge.store import audit, dedupe, mode
from edge.store.client import Store
from edge.store.commit import NOTHING, Commit
from edge.store.mode import StoredMode

KEEP = 1000
NOW, DRAIN = MaintenanceKind.NOW, MaintenanceKind.DRAIN


async def switch(store: Store, request: ModeRequest, gateway: str = "", also: Commit = NOTHING) -> Maintenance | None:
    record = AuditRecord(at=5, kind="cli.call", instance="gw-1", user="anna", action=type(request).__name__)
    return await switch_mode(store, gateway, request, record, lambda: 5, KEEP, also)


async def actions(store: Store) -> list[str]:
    records = [sealed_record async for sealed_record in audit.read_all(store)]
    assert list(find_faults(records, await audit.load_head(store), KEEP)) == []
    return [json.loads(record.text)["action"] for record in records]


def test_second_request_keeps_the_start_time_and_replaces_the_rest() -> None:
    first = decide_mode(None, SwitchOn("anna"), 5)
    assert first == Maintenance(message=DEFAULT_MESSAGE, since=5, by="anna")
    second = decide_mode(first, SwitchOn("ben", NOW, "fire", 99), 7)
    assert second == Maintenance(kind=NOW, message="fire", since=5, until=99, by="ben")
    assert decide_mode(second, SwitchOff(), 8) is None


@pytest.mark.parametrize("request_", [SwitchOn("anna", until=5), SwitchOn("anna", message="x" * (MAX_MESSAGE + 1))])
def test_invalid_maintenance_request_is_refused(request_: SwitchOn) -> None:
    with pytest.raises(Refused, match=r"has passed|more than"):
        decide_mode(None, request_, 5)


def test_pausing_mode_takes_precedence_over_draining_mode() -> None:
    drain, now = Maintenance(kind=DRAIN), Maintenance(kind=NOW)
    assert mode_in_force(StoredMode(None, None, ())) is None
    assert mode_in_force(StoredMode(drain, None, ())) is drain
    assert mode_in_force(StoredMode(drain, now, ())) is now
    assert mode_in_force(StoredMode(None, drain, ())) is drain


async def test_mode_of_one_gateway_does_not_affect_other_gateways(store: Store) -> None:
    await switch(store, SwitchOn("anna", DRAIN, "cell 1"), "gw-1")
    assert mode_in_force(await mode.load(store, "gw-2")) is None
    maintenance = mode_in_force(await mode.load(store, "gw-1"))
    assert maintenance
    assert (maintenance.message, maintenance.by) == ("cell 1", "anna")
    assert await store.execute("GET", store.keys.mode_of("gw-1")) == "1"
    assert await store.execute("GET", store.keys.mode()) is None
    assert await switch(store, SwitchOff(), "gw-1") is None
    assert await actions(store) == ["SwitchOn", "SwitchOff"]


async def test_switches_of_several_people_are_all_recorded(store: Store) -> None:
    await asyncio.gather(*(switch(store, SwitchOn("anna") if number % 2 else SwitchOff()) for number in range(20)))
    found = await actions(store)
    assert (found.count("SwitchOn"), found.count("SwitchOff")) == (10, 10)


async def test_request_executed_by_another_process_is_recorded_once(store: Store) -> None:
    mark = dedupe.mark(store.keys, "/mes", "1", "On", 60_000)
    await switch(store, SwitchOn("anna"), also=mark)
    await switch(store, SwitchOn("anna"), also=mark)
    assert await actions(store) == ["SwitchOn"]
