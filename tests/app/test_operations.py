"""A gateway writes backups and support bundles to its folder and keeps the newest."""

import asyncio
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from edge.access.operations import schedule_operation
from edge.app.features import declared_sections
from edge.app.operations import accepts, remove_old_files, stages
from edge.app.wiring import open_gateway
from edge.config import load_settings
from edge.features.station_files.apply import find_differences
from edge.foundation.text import Text
from edge.model.plant import Operation, OperationType
from edge.store import audit, operations
from edge.store.client import Store
from tests.features.station_files.site import NUMBER_OF_OBJECTS, SCOPE, make_site, new_documents, read_site, write

pytestmark = pytest.mark.slow


def test_only_the_newest_files_of_a_type_are_kept(tmp_path: Path) -> None:
    for name in ("gw-backup-1", "gw-backup-2", "gw-backup-3", "gw-support-bundle-1", "other"):
        (tmp_path / f"{name}.tar.gz").touch()
    remove_old_files(tmp_path, "gw-backup", 2)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        *("gw-backup-2.tar.gz", "gw-backup-3.tar.gz", "gw-support-bundle-1.tar.gz", "other.tar.gz")
    ]


def test_progress_of_stages_stays_below_100_percent() -> None:
    seen: list[tuple[float, str | Text]] = []
    line = stages(lambda progress, text: seen.append((progress, text)))
    for number in range(7):
        line(Text(str(number)))
    assert [progress for progress, _ in seen] == [20, 40, 60, 80, 95, 95, 95]


@pytest.mark.parametrize("directory", ["files", "/proc/nothing"])
async def test_backup_is_executed_or_its_error_is_reported(
    settings_text: str, tmp_path: Path, store: Store, directory: str
) -> None:
    file = tmp_path / "edge.toml"
    folder = tmp_path / directory
    file.write_text(f'{settings_text}[operations]\ndirectory = "{folder}"\n')
    settings = load_settings(file, {}, declared_sections())
    scheduled = await schedule_operation(store, OperationType.BACKUP, "anna", 0, {})
    async with open_gateway(settings, settings_file=file), asyncio.timeout(60):
        while not (found := await operations.load(store, scheduled.id)) or not found.operation.has_ended:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    if directory == "files":
        assert found.operation.state == "done", found
        with tarfile.open(str(found.operation.result)) as archive:
            assert {"manifest.json", "store.jsonl"} <= set(archive.getnames())
    else:
        assert "cannot be created" in str(found.operation.error)


@pytest.fixture
def settings_text(store: Store, valkey: str) -> str:
    return f'[redis]\nurl = "{valkey}"\nprefix = "{store.keys.prefix}"\n[mqtt]\nurl = ""\n[opcua]\nendpoint = ""\n'


async def test_station_is_imported_from_files_and_exported(settings_text: str, tmp_path: Path, store: Store) -> None:
    file, folder = tmp_path / "edge.toml", tmp_path / "station.d"
    file.write_text(f'{settings_text}[operations]\ndirectory = "{tmp_path}"\n[station]\nfiles = "{folder}"\n')
    settings = load_settings(file, {}, declared_sections())
    async with open_gateway(settings, settings_file=file), asyncio.timeout(60):
        make_site(folder)
        results = []
        for type in (OperationType.IMPORT, OperationType.EXPORT):
            scheduled = await schedule_operation(store, type, "anna", 0, {})
            while not (found := await operations.load(store, scheduled.id)) or not found.operation.has_ended:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            results.append(found.operation.result)
    assert str(results[0]) == f"{NUMBER_OF_OBJECTS} objects changed"
    with tarfile.open(str(results[1])) as archive:
        archive.extractall(tmp_path / "new", filter="data")
    exported = await read_site(tmp_path / "new" / "station.d")
    assert await find_differences(store, [SCOPE], exported.checked(), new_documents()) == ()
    records: list[dict[str, Any]] = [json.loads(sealed_record.text) for sealed_record in await audit.newest(store, 50)]
    assert [record["user"] for record in records if record["action"] == "station put workmaster"] == ["anna"]


async def test_import_of_absent_or_faulty_files_fails_with_the_reason(
    settings_text: str, tmp_path: Path, store: Store
) -> None:
    file, folder = tmp_path / "edge.toml", tmp_path / "station.d"
    file.write_text(f'{settings_text}[station]\nfiles = "{folder}"\n')
    settings = load_settings(file, {}, declared_sections())
    errors = []
    async with open_gateway(settings, settings_file=file), asyncio.timeout(60):
        for content in (None, "{bad"):
            if content:
                write(folder, "rules/bad.json", content)
            scheduled = await schedule_operation(store, OperationType.IMPORT, "anna", 0, {"delete": "yes"})
            while not (found := await operations.load(store, scheduled.id)) or not found.operation.has_ended:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            errors.append(str(found.operation.error))
    assert [error.rpartition("station.d: ")[2].partition(" ")[0] for error in errors] == [
        "there",
        "rules/bad.json:",
    ]


async def test_messages_of_equipment_are_recorded(settings_text: str, tmp_path: Path, store: Store) -> None:
    file, folder = tmp_path / "edge.toml", tmp_path / "files"
    light = '[southbound.light]\nkind = "stacklight"\nchip = "fake"\nlamps = { red = 1 }\ntype_ids = ["a"]\n'
    file.write_text(f'{settings_text}[operations]\ndirectory = "{folder}"\n{light}')
    settings = load_settings(file, {}, declared_sections())
    found = []
    async with open_gateway(settings, settings_file=file), asyncio.timeout(60):
        for arguments in ({"equipment": "light", "seconds": "1"}, {"equipment": "light", "seconds": "0"}, {}):
            scheduled = await schedule_operation(store, OperationType.RECORD, "anna", 0, arguments)
            while not (stored := await operations.load(store, scheduled.id)) or not stored.operation.has_ended:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            found.append(stored.operation)
    (recorded,) = folder.glob("*.jsonl")
    assert [operation.state for operation in found] == ["done", "failed", "failed"]
    assert str(found[0].result).startswith(f"{recorded}: ")
    assert json.loads(recorded.read_text().splitlines()[0])["equipment"] == "light"
    assert ("not a number of seconds" in str(found[1].error), "no equipment" in str(found[2].error)) == (True, True)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [({}, True), ({"gateway": "gw-1"}, True), ({"gateway": "gw-2"}, False), ({"equipment": "light"}, False)],
)
def test_operation_for_another_gateway_is_not_accepted(arguments: dict[str, str], *, expected: bool) -> None:
    """A recording was executed by the first gateway, which did not have the equipment."""
    settings = load_settings(None, {"EDGE_GATEWAY__NAME": "gw-1"}, declared_sections())
    asked = Operation(id="1", type=OperationType.RECORD, by="anna", due=0, created=0, arguments=arguments)
    assert accepts(settings, asked) is expected
