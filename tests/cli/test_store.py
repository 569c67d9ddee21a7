"""`edge store repair` reports what it has done to the files of a stopped store."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from edge.cli import main
from edge.config import RedisSettings
from edge.store.opening import open_store


@pytest.fixture
async def stopped(tmp_path: Path) -> Path:
    """The directory of a store that was stopped."""
    directory = tmp_path / "store"
    async with open_store(RedisSettings(url=f"embedded:{directory}", prefix="p", durability="any"), None) as store:
        await store.execute("SET", "job", "stored")
    return directory


def repair(directory: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["store", "repair", str(directory), *options])


def damage(directory: Path, rest: bytes) -> None:
    with (directory / "appendonlydir" / "appendonly.aof.1.incr.aof").open("ab") as file:
        file.write(rest)


def test_whole_store_is_reported_as_whole(stopped: Path) -> None:
    assert (result := repair(stopped)).exit_code == 0
    assert "is whole" in result.output
    assert json.loads(repair(stopped, "--json").output) == {"repaired": False, "kept": None}


def test_repair_reports_the_bytes_and_the_kept_file(stopped: Path) -> None:
    damage(stopped, bytes(512))
    done = json.loads(repair(stopped, "--json").output)
    assert (done["repaired"], done["cut_bytes"]) == (True, 512)
    assert (Path(done["kept"]) / done["file"]).read_bytes().endswith(bytes(512))


def test_other_damage_exits_with_1_and_names_the_page(stopped: Path) -> None:
    damage(stopped, b"garbage")
    assert (result := repair(stopped)).exit_code == 1
    assert "store-repair.md" in result.output


def test_missing_directory_exits_with_2(tmp_path: Path) -> None:
    assert repair(tmp_path / "none").exit_code == 2
