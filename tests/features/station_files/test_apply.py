"""Station files fill an empty store once; applying them to a used store changes only what is requested."""

import asyncio
from pathlib import Path

import pytest

from edge.access.initialization import FillOutcome
from edge.app.documents import Described, GuardedStore
from edge.features.station_files.apply import (
    ObjectWriter,
    apply_files,
    fill_store,
    find_differences,
    load_objects,
    read_files,
)
from edge.features.station_files.objects import ObjectChange, ObjectDifference, StationObject
from edge.foundation.errors import Refused, SettingsError
from edge.foundation.instant import now_ms
from edge.station.settings import SettingsMethod, StationSettings
from edge.store import initialization, resources
from edge.store.client import Store
from edge.store.initialization import FillState
from tests.features.station_files.site import (
    FLOW,
    MASTER,
    NUMBER_OF_OBJECTS,
    SCOPE,
    make_site,
    new_documents,
    read_site,
    write,
)


async def fill(store: Store, folder: Path, owner: str = "gw") -> tuple[FillOutcome, int]:
    return await fill_store(GuardedStore(store, now_ms), owner, [SCOPE], folder, new_documents())


async def apply(store: Store, folder: Path, *, delete: bool = False) -> list[str]:
    applied: list[str] = []

    async def report(object_difference: ObjectDifference) -> None:
        applied.append(f"{object_difference.change} {object_difference.subject}")

    documents = new_documents()
    files = await read_files(folder, documents)
    await apply_files(GuardedStore(store, now_ms), "anna", [SCOPE], files, documents, report, delete=delete)
    return applied


async def differences(store: Store, folder: Path) -> list[str]:
    object_differences = await find_differences(store, [SCOPE], (await read_site(folder)).checked(), new_documents())
    return [f"{object_difference.change} {object_difference.subject}" for object_difference in object_differences]


async def test_one_of_three_instances_fills_an_empty_store(store: Store, tmp_path: Path) -> None:
    make_site(tmp_path)
    outcomes = await asyncio.gather(*(fill(store, tmp_path, f"gw{number}") for number in range(3)))
    assert sorted(written for _, written in outcomes) == [0, 0, NUMBER_OF_OBJECTS]
    assert await differences(store, tmp_path) == []
    revision = await store.execute("HGET", store.keys.workmaster("axle"), "rev")
    assert int(revision) % resources.REVISION_SPAN == 1


async def test_resumed_filling_keeps_objects_changed_meanwhile(store: Store, tmp_path: Path) -> None:
    await store.commit(initialization.begin(store.keys))
    changed = {**MASTER, "Description": {"Text": "by hand"}}
    await StationSettings(store).apply(SCOPE, "workmaster", SettingsMethod.PUT, changed)
    assert await fill(store, make_site(tmp_path)) == (FillOutcome.FILLED_HERE, NUMBER_OF_OBJECTS - 1)
    assert await differences(store, tmp_path) == [f"changed workmaster {SCOPE}/axle"]


async def test_store_in_use_is_not_filled(store: Store, tmp_path: Path) -> None:
    await StationSettings(store).apply(SCOPE, "equipment", SettingsMethod.PUT, {"ID": "saw"})
    assert await fill(store, make_site(tmp_path)) == (FillOutcome.IN_USE, 0)


async def test_faulty_file_keeps_an_empty_store_empty(store: Store, tmp_path: Path) -> None:
    write(make_site(tmp_path), "rules/bad.json", "{bad")
    with pytest.raises(SettingsError, match=r"rules/bad\.json: not JSON"):
        await fill(store, tmp_path)
    with pytest.raises(SettingsError, match=r"rules/bad\.json: not JSON"):
        await apply(store, tmp_path)
    assert await store.execute("KEYS", f"{store.keys.prefix}:*workmaster*") == []
    assert await initialization.load_state(store) is FillState.ABSENT


async def test_folder_without_objects_deletes_nothing(store: Store, tmp_path: Path) -> None:
    await apply(store, make_site(tmp_path / "site"))
    write(tmp_path, "new/rules/none.json", [])
    with pytest.raises(Refused, match="there are no station files"):
        await apply(store, tmp_path / "new", delete=True)
    assert await differences(store, tmp_path / "site") == []


async def test_apply_writes_differences_and_deletes_only_if_requested(store: Store, tmp_path: Path) -> None:
    assert len(await apply(store, make_site(tmp_path))) == NUMBER_OF_OBJECTS
    assert await initialization.load_state(store) is FillState.FILLED
    settings = StationSettings(store)
    await settings.apply(SCOPE, "equipment", SettingsMethod.PUT, {"ID": "saw"})
    await settings.apply(SCOPE, "jobacceptance", SettingsMethod.DELETE, None)
    await settings.apply(SCOPE, "workmaster", SettingsMethod.PUT, {**MASTER, "Description": {"Text": "by hand"}})
    found = [
        f"{ObjectChange.EXTRA} equipment {SCOPE}/saw",
        f"{ObjectChange.MISSING} jobacceptance {SCOPE}",
        f"{ObjectChange.CHANGED} workmaster {SCOPE}/axle",
    ]
    assert await differences(store, tmp_path) == found
    assert await apply(store, tmp_path) == found[1:]
    assert await apply(store, tmp_path, delete=True) == found[:1]
    assert await apply(store, tmp_path, delete=True) == []


async def test_every_object_is_written_read_and_deleted(store: Store, tmp_path: Path) -> None:
    documents = new_documents()
    files = (await read_files(make_site(tmp_path), documents)).checked()
    writer = ObjectWriter(GuardedStore(store, now_ms), documents)
    for subject, described in files.items():
        assert await writer.put(subject, described)
    describeds = await load_objects(store, [SCOPE], new_documents())
    assert len(describeds) == NUMBER_OF_OBJECTS
    assert {station_object: (found.content, found.folder) for station_object, found in describeds.items()} == {
        file: (found.content, found.folder) for file, found in files.items()
    }
    for subject in files:
        assert await writer.delete(subject)
    assert await load_objects(store, [SCOPE], new_documents()) == {}


async def test_failed_guard_prevents_the_write(store: Store, tmp_path: Path) -> None:
    documents = new_documents()
    files = (await read_files(make_site(tmp_path), documents)).checked()
    late = ObjectWriter(GuardedStore(store, now_ms, initialization.while_filling(store.keys)), documents)
    for subject, described in files.items():
        assert not await late.put(subject, described)
        assert not await late.delete(subject)
    assert await load_objects(store, [SCOPE], new_documents()) == {}


async def test_stopped_flow_stays_stopped_with_new_content(store: Store) -> None:
    subject = StationObject("flow", "", "count")
    documents = new_documents()
    await documents.of("flow").prepare()
    writer = ObjectWriter(GuardedStore(store, now_ms), documents)
    await writer.put(subject, Described(FLOW, folder="stopped"))
    await writer.put(subject, Described({**FLOW, "interval_seconds": 20}))
    (described,) = (await load_objects(store, [], new_documents())).values()
    assert (described.content["interval_seconds"], described.folder) == (20, "stopped")


async def test_unreadable_content_of_the_store_is_read_as_text(store: Store) -> None:
    await store.execute("HSET", store.keys.telemetry_rules(), "id:hot", "{bad")
    assert (await load_objects(store, [], new_documents()))[StationObject("rule", "", "hot")].content == "{bad"
