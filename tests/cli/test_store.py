"""`edge store`: the state of the servers, and the repair of the files of a stopped store."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from edge.cli import main
from edge.config import RedisSettings
from edge.store.open_store import open_store
from tests.cli.calling import Edge
from tests.store.sentinel_line import Line, open_line


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


async def status(line: Line, directory: Path, *options: str) -> Result:
    """Call `edge store status` on a line, on a terminal of 80 columns."""
    file = directory / "edge.toml"
    file.write_text(f'[redis]\nurl = "{line.settings("p").url}"\nprefix = "p"\n')
    command = ["store", "status", "--settings", str(file), *options]
    return await asyncio.to_thread(CliRunner(env={"COLUMNS": "80"}).invoke, main, command)


async def test_status_of_a_line_shows_nodes_sentinels_and_fence(tmp_path: Path) -> None:
    async with open_line(tmp_path) as line:
        result = await status(line, tmp_path)
        for node in (*line.nodes, *line.sentinels):
            assert f"127.0.0.1:{node.port}" in result.output
        assert "confirmed   yes, for the next" in result.output
        assert "durability  required: a failover may lose" in result.output
        assert result.exit_code == 0


async def test_status_needs_no_majority_and_exits_with_1(tmp_path: Path) -> None:
    async with open_line(tmp_path) as line:
        for sentinel in line.sentinels[:2]:
            await sentinel.kill()
        found = json.loads((result := await status(line, tmp_path, "--json")).output)
        assert result.exit_code == 1
        assert {"no_majority", "sentinel_away"} == {problem["kind"] for problem in found["problems"]}
        assert found["primary"]["address"] == f"127.0.0.1:{line.nodes[0].port}"
        assert found["primary"]["clock_seconds"] < 1
        assert "no: no majority" in (await status(line, tmp_path)).output


async def test_status_of_a_single_server_has_no_fence(edge: Edge) -> None:
    result = await edge("store", "status")
    assert "primary" in result.output
    assert "confirmed" not in result.output
    assert result.exit_code == 0


async def switch_over(line: Line, directory: Path, *options: str) -> Result:
    file = directory / "edge.toml"
    file.write_text(f'[redis]\nurl = "{line.settings("p").url}"\nprefix = "p"\n')
    command = ["store", "switch-over", "--settings", str(file), *options]
    return await asyncio.to_thread(CliRunner().invoke, main, command)


async def test_switch_over_reports_the_new_primary_and_records_it(tmp_path: Path) -> None:
    async with open_line(tmp_path) as line:
        result = await switch_over(line, tmp_path)
        old, new = (f"127.0.0.1:{node.port}" for node in line.nodes)
        assert result.exit_code == 0, result.output
        assert f"{old} is a replica of {new}" in result.output
        assert f"{new} is the primary instead of {old} after" in result.output
        trail = await line.nodes[1].call("XRANGE", "p:audit", "-", "+")
        assert "store switch-over" in str(trail)


async def test_refused_switch_over_exits_with_1_and_records_why(tmp_path: Path) -> None:
    async with open_line(tmp_path) as line:
        result = await switch_over(line, tmp_path, "--to", "10.0.0.9:6379", "--json")
        assert result.exit_code == 1
        assert "is not a replica that can be promoted" in result.output
        assert "is not a replica" in str(await line.nodes[0].call("XRANGE", "p:audit", "-", "+"))
