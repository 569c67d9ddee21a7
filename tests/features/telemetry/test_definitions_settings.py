"""Rules and tags of the MES are stored completely, or refused with every fault, and can be read back."""

import asyncio
from typing import Any

import pytest

from edge.app.features import settings_kinds
from edge.features.telemetry.definitions import MAX_RULES
from edge.foundation.errors import Refused
from edge.station.settings import EventOrigin, SettingsMethod, StationSettings
from edge.store.client import Store
from tests.station.plant import SCOPE

HOT = {"id": "hot", "kind": "limit", "tag": "t", "limits": {"high": {"at": 80, "severity": 500}}}


def occurs(rule_id: str) -> dict[str, Any]:
    return {"id": rule_id, "kind": "occurs", "pattern": "x", "severity": 1}


@pytest.fixture
def settings(store: Store) -> StationSettings:
    return StationSettings(store, settings_kinds())


async def put(settings: StationSettings, payload: object) -> None:
    await settings.apply(SCOPE, "rule", SettingsMethod.PUT, payload)


async def test_rules_are_put_read_and_deleted(settings: StationSettings) -> None:
    await put(settings, [HOT, occurs("b")])
    await put(settings, HOT | {"hysteresis": 5})
    assert await settings.read(SCOPE, "rule", None) == [occurs("b"), HOT | {"hysteresis": 5}]
    assert await settings.read(SCOPE, "rule", {"id": "b"}) == [occurs("b")]
    await settings.apply(SCOPE, "rule", SettingsMethod.DELETE, [{"id": "hot"}, "none"])
    assert await settings.read(SCOPE, "rule", []) == [occurs("b")]


async def test_all_faults_are_reported_and_nothing_is_stored(settings: StationSettings) -> None:
    wrong = [HOT, {"id": "a", "kind": "fax"}, HOT | {"id": "c", "x": 1, "hysteresis": -1}, 7, HOT]
    with pytest.raises(Refused) as caught:
        await put(settings, wrong)
    assert caught.value.kind == "rule"
    for part in ("unknown kind 'fax'", "unknown member 'x'", "'hysteresis'", "rules[3]", "2 rules have this id"):
        assert part in caught.value.message
    assert await settings.read(SCOPE, "rule", None) == []


@pytest.mark.parametrize("payload", [None, [], {}, {"id": ""}, {"id": 5}, [{"id": "a"}, {}]])
async def test_deletion_without_a_rule_id_is_refused(settings: StationSettings, payload: object) -> None:
    with pytest.raises(Refused) as caught:
        await settings.apply(SCOPE, "rule", SettingsMethod.DELETE, payload)
    assert caught.value.kind == "invalid_payload"


@pytest.mark.untraced
async def test_number_and_size_of_rules_are_bounded(settings: StationSettings) -> None:
    await put(settings, [occurs(f"r{number}") for number in range(MAX_RULES)])
    await put(settings, occurs("r0"))
    with pytest.raises(Refused, match="more than 1000 rules"):
        await put(settings, occurs("one more"))
    with pytest.raises(Refused, match="more than 16384 bytes"):
        await put(settings, occurs("r0") | {"message": "x" * 20_000})


async def test_concurrent_rules_are_all_stored_once(settings: StationSettings) -> None:
    origin = EventOrigin("mes", "1")
    await asyncio.gather(*(put(settings, occurs(f"r{number}")) for number in range(10)))
    for _ in range(2):
        await settings.apply(SCOPE, "rule", SettingsMethod.DELETE, {"id": "r0"}, origin)
    found = await settings.read(SCOPE, "rule", None)
    assert isinstance(found, list)
    assert len(found) == 9


async def test_definitions_of_tags_are_put_read_and_deleted(settings: StationSettings) -> None:
    await settings.apply(SCOPE, "tag", SettingsMethod.PUT, [{"tag": "t", "unit": "CEL"}, {"tag": "rev"}])
    await settings.apply(SCOPE, "tag", SettingsMethod.PUT, {"tag": "t", "unit": "KEL", "high": 400})
    assert await settings.read(SCOPE, "tag", ["t"]) == [{"tag": "t", "unit": "KEL", "high": 400}]
    await settings.apply(SCOPE, "tag", SettingsMethod.DELETE, {"tag": "t"})
    assert await settings.read(SCOPE, "tag", None) == [{"tag": "rev"}]
    with pytest.raises(Refused) as caught:
        await settings.apply(SCOPE, "tag", SettingsMethod.PUT, [{"tag": ""}, {"tag": "a", "low": 2, "high": 1}])
    assert (caught.value.kind, "low (2) and high (1)" in caught.value.message) == ("tag", True)
