"""Objects are read from the store and written to it, each in one commit under the guard of the writer."""

from pathlib import Path

from edge.features.flows.plan import Plans
from edge.features.station_files.objects import Described, ObjectKind, StationObject
from edge.features.station_files.stored import ObjectWriter, load_objects
from edge.foundation.instant import now_ms
from edge.store import initialization
from edge.store.client import Store
from tests.features.station_files.site import FLOW, NUMBER_OF_OBJECTS, SCOPE, make_site, read_site


async def test_every_object_is_written_read_and_deleted(store: Store, tmp_path: Path) -> None:
    site = await read_site(make_site(tmp_path))
    writer = ObjectWriter(store, site.plans, now_ms)
    files = site.files.checked()
    for subject, described in files.items():
        assert await writer.put(subject, described)
    stored = await load_objects(store, [SCOPE])
    assert len(stored) == NUMBER_OF_OBJECTS
    assert {station_object: (found.content, found.runs) for station_object, found in stored.items()} == {
        file: (found.content, found.runs) for file, found in files.items()
    }
    for subject in files:
        assert await writer.delete(subject)
    assert await load_objects(store, [SCOPE]) == {}


async def test_failed_guard_prevents_the_write(store: Store, tmp_path: Path) -> None:
    site = await read_site(make_site(tmp_path))
    late = ObjectWriter(store, site.plans, now_ms, initialization.while_filling(store.keys))
    for subject, described in site.files.checked().items():
        assert not await late.put(subject, described)
        assert not await late.delete(subject)
    assert await load_objects(store, [SCOPE]) == {}


async def test_stopped_flow_stays_stopped_with_new_content(store: Store) -> None:
    subject = StationObject(ObjectKind.FLOW, "", "count")
    writer = ObjectWriter(store, Plans(), now_ms)
    await writer.put(subject, Described(FLOW, runs=False))
    await writer.put(subject, Described({**FLOW, "interval_seconds": 20}, runs=True))
    (found,) = (await load_objects(store, [])).values()
    assert (found.content["interval_seconds"], found.runs) == (20, False)


async def test_unreadable_content_of_the_store_is_read_as_text(store: Store) -> None:
    await store.execute("HSET", store.keys.telemetry_rules(), "id:hot", "{bad")
    assert (await load_objects(store, []))[StationObject(ObjectKind.RULE, "", "hot")].content == "{bad"
