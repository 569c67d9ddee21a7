"""A store is repaired after a power cut, and after no other damage: with the files of real servers, and their check."""

import asyncio
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.config import RedisSettings
from edge.foundation.errors import Refused, Unavailable
from edge.store.embedded import server_program
from edge.store.open_store import open_store
from edge.store.store_repair import Rest, StoreRepair, Survey, load_repairs, load_reports, repair_store, survey
from tests.waiting import until_async

INCREMENT = "appendonly.aof.1.incr.aof"
BASE = "appendonly.aof.1.base.rdb"
JOBS = {f"job:{number}": "x" * 50 for number in range(20)}


def settings_of(directory: Path) -> RedisSettings:
    return RedisSettings(url=f"embedded:{directory}", prefix="repair", durability="any")


@pytest.fixture
async def stopped(tmp_path: Path) -> Path:
    """The directory of a store with twenty keys that was stopped."""
    directory = tmp_path / "store"
    await write(directory)
    return directory


async def write(directory: Path) -> None:
    async with open_store(settings_of(directory), None) as store:
        for key, value in JOBS.items():
            await store.execute("SET", key, value)


async def keys_of(directory: Path) -> dict[str, str]:
    async with open_store(settings_of(directory), None) as store:
        return {key: value for key in JOBS if (value := await store.execute("GET", key)) is not None}


def append(directory: Path, rest: bytes) -> None:
    with (directory / "appendonlydir" / INCREMENT).open("ab") as file:
        file.write(rest)


def names_in(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*")}


def program() -> Path:
    return Path(server_program())


@pytest.mark.parametrize("rest", [bytes(512), bytes(8192), b"*3\r\n$3\r\nSET\r\n$5\r\njob" + bytes(4000)])
async def test_zeros_after_a_power_cut_are_cut_off_at_the_start(stopped: Path, rest: bytes) -> None:
    append(stopped, rest)
    assert await keys_of(stopped) == JOBS
    (repair,) = load_repairs(stopped)
    assert (repair.kept / INCREMENT).read_bytes().endswith(rest)
    assert repair.report.cut_bytes == len(rest)


async def test_report_lies_where_a_gateway_may_read_it(stopped: Path, tmp_path: Path) -> None:
    """The store of a line was repaired, and only the journal of its machine said so."""
    reports = tmp_path / "reports"
    reports.mkdir()
    append(stopped, bytes(512))
    done = repair_store(stopped, program(), 1_700_000_000_000, reports)
    assert load_reports(reports) == (done,)
    assert done is not None
    assert (done.report.cut_bytes, done.kept.parent) == (512, stopped / "repaired")
    assert done.remains == f"{done.kept} {reports}/1700000000000.json"
    assert (reports / "1700000000000.json").stat().st_mode & 0o777 == 0o644


async def test_reports_of_the_last_three_repairs_stay(stopped: Path, tmp_path: Path) -> None:
    for number in range(4):
        append(stopped, bytes(512))
        repair_store(stopped, program(), number, tmp_path)
    assert [repair.report.at for repair in load_reports(tmp_path)] == [1, 2, 3]


async def test_store_is_repaired_also_where_its_report_cannot_be_written(stopped: Path, tmp_path: Path) -> None:
    append(stopped, bytes(512))
    with pytest.raises(Unavailable, match="none"):
        repair_store(stopped, program(), 1, tmp_path / "none")
    assert await keys_of(stopped) == JOBS
    assert repair_store(stopped, program(), 2) is None


async def test_torn_command_without_zeros_is_left_to_the_server(stopped: Path) -> None:
    append(stopped, b"*3\r\n$3\r\nSET\r\n$5\r\njob")
    assert await keys_of(stopped) == JOBS
    assert load_repairs(stopped) == ()


@pytest.mark.parametrize("rest", [bytes(64) + b"*1\r\n$4\r\nPING\r\n", b"garbage", bytes(9) + b"x"])
async def test_store_with_data_behind_the_damage_is_left_as_it_is(stopped: Path, rest: bytes) -> None:
    append(stopped, rest)
    before = (stopped / "appendonlydir" / INCREMENT).read_bytes()
    with pytest.raises(Unavailable, match="more than a power cut leaves") as raised:
        await keys_of(stopped)
    assert "store-repair.md" in raised.value.advice
    assert (stopped / "appendonlydir" / INCREMENT).read_bytes() == before
    assert load_repairs(stopped) == ()


async def test_damaged_base_file_is_left_as_it_is(stopped: Path) -> None:
    base = stopped / "appendonlydir" / BASE
    base.write_bytes(base.read_bytes()[:-20] + bytes(20))
    append(stopped, bytes(512))
    with pytest.raises(Unavailable, match="is damaged"):
        await keys_of(stopped)
    assert load_repairs(stopped) == ()


@pytest.mark.parametrize("manifest", ["", "\0" * 88, "file appendonly.aof.1.base.rdb seq 1 type b\n", "file x\n"])
async def test_damaged_manifest_is_left_as_it_is(stopped: Path, manifest: str) -> None:
    (stopped / "appendonlydir" / "appendonly.aof.manifest").write_text(manifest)
    with pytest.raises(Refused, match="cannot be read"):
        repair_store(stopped, program(), 1)


async def test_directory_without_a_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="has no manifest"):
        repair_store(tmp_path, program(), 1)


async def test_store_without_the_list_of_its_files_does_not_start_empty(stopped: Path) -> None:
    """The server started without a word, and its next rewrite removed the files of 25 jobs."""
    folder = stopped / "appendonlydir"
    manifest = folder / "appendonly.aof.manifest"
    content = manifest.read_bytes()
    manifest.unlink()
    with pytest.raises(Unavailable, match="has no manifest") as raised:
        await keys_of(stopped)
    assert "store-repair.md" in raised.value.advice
    assert names_in(folder) == {BASE, INCREMENT}
    manifest.write_bytes(content)
    assert await keys_of(stopped) == JOBS


@pytest.mark.parametrize("file", [BASE, INCREMENT])
async def test_missing_file_of_the_list_is_a_damage(stopped: Path, file: str) -> None:
    """The advice was to call the command as root, and to free space."""
    (stopped / "appendonlydir" / file).unlink()
    with pytest.raises(Refused, match=f"{file} is missing") as raised:
        repair_store(stopped, program(), 1)
    assert "store-repair.md" in raised.value.advice


async def test_person_may_cut_off_what_lies_behind_a_damage(stopped: Path) -> None:
    """redis-check-aof of Debian refuses the base file that a newer Valkey wrote: no way back was left."""
    append(stopped, bytes(64) + b"*1\r\n$4\r\nPING\r\n")
    done = repair_store(stopped, program(), 1, discard_damage=True)
    assert isinstance(done, StoreRepair)
    assert (done.report.cut_bytes, done.report.discarded) == (64 + 14, True)
    assert (done.kept / INCREMENT).read_bytes().endswith(b"PING\r\n")
    assert await keys_of(stopped) == JOBS


async def test_damage_of_another_file_is_not_discarded(stopped: Path) -> None:
    base = stopped / "appendonlydir" / BASE
    base.write_bytes(base.read_bytes()[:-20] + bytes(20))
    append(stopped, b"garbage")
    with pytest.raises(Refused, match="is damaged"):
        repair_store(stopped, program(), 1, discard_damage=True)


async def test_store_that_runs_is_not_repaired(stopped: Path) -> None:
    async with open_store(settings_of(stopped), None):
        append(stopped, bytes(16))
        with pytest.raises(Refused, match="open"):
            repair_store(stopped, program(), 1)


async def test_whole_store_is_left_as_it_is(stopped: Path) -> None:
    before = names_in(stopped)
    assert repair_store(stopped, program(), 1) is None
    assert names_in(stopped) == before


async def test_newest_three_damaged_files_are_kept(stopped: Path) -> None:
    for now in (100, 200, 300, 400):
        append(stopped, bytes(16))
        assert isinstance(repair_store(stopped, program(), now), StoreRepair)
    assert [repair.report.at for repair in load_repairs(stopped)] == [200, 300, 400]


async def test_repair_that_a_power_cut_ended_leaves_no_copy(stopped: Path) -> None:
    append(stopped, bytes(16))
    unfinished = stopped / "repaired" / "100"
    unfinished.mkdir(parents=True)
    (unfinished / INCREMENT).hardlink_to(stopped / "appendonlydir" / INCREMENT)
    assert isinstance(repair_store(stopped, program(), 200), StoreRepair)
    assert not unfinished.exists()


async def test_files_of_debians_redis_are_repaired_by_its_own_checks(tmp_path: Path) -> None:
    directory = tmp_path / "debian"
    directory.mkdir()
    server = shutil.which("redis-server")
    assert server is not None, "make setup installs it"
    command = [server, "--port", "0", "--unixsocket", f"{directory}/s", "--dir", str(directory), "--appendonly", "yes"]
    tool = ["redis-cli", "-s", f"{directory}/s"]

    def ask(*arguments: str) -> str:
        return subprocess.run([*tool, *arguments], capture_output=True, text=True, check=False).stdout.strip()

    for start in range(2):
        running = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
        await until_async(lambda: asyncio.to_thread(lambda: ask("ping") == "PONG"))
        if start == 0:
            ask("set", "job:1", "stored")
        assert ask("get", "job:1") == "stored"
        ask("shutdown", "nosave")
        await running.wait()
        if start == 0:
            append(directory, bytes(512))
            assert repair_store(directory, Path(server), 1) is not None


def command(*arguments: bytes) -> bytes:
    parts = (b"$%d\r\n%s\r\n" % (len(argument), argument) for argument in arguments)
    return b"*%d\r\n%s" % (len(arguments), b"".join(parts))


SELECT = command(b"SELECT", b"0")
SET = command(b"SET", b"job:1", b"\r\n*1\r\n\0\0")
MULTI, EXEC = command(b"MULTI"), command(b"exec")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", Survey(0, Rest.NONE)),
        (SELECT + SET, Survey(len(SELECT + SET), Rest.NONE)),
        (SELECT + SET + bytes(512), Survey(len(SELECT + SET), Rest.TORN)),
        (SELECT + SET[:-3], Survey(len(SELECT), Rest.TORN)),
        (SELECT + SET[:-9] + bytes(4096), Survey(len(SELECT), Rest.TORN)),
        (SELECT + MULTI + SET, Survey(len(SELECT), Rest.TORN)),
        (SELECT + MULTI + SET + SET[:7] + bytes(9), Survey(len(SELECT), Rest.TORN)),
        (SELECT + MULTI + SET + EXEC + bytes(1), Survey(len(SELECT + MULTI + SET + EXEC), Rest.TORN)),
        (b"#TS:1700000000\r\n" + SELECT, Survey(len(SELECT) + 16, Rest.NONE)),
        (SELECT + b"#TS:17000", Survey(len(SELECT), Rest.TORN)),
        (bytes(4096), Survey(0, Rest.TORN)),
        # Data behind zeros, or instead of a command: the file does not say what was acknowledged.
        (SELECT + bytes(512) + SET, Survey(len(SELECT), Rest.DAMAGE)),
        (SELECT + b"\0" + SET[:-1], Survey(len(SELECT), Rest.DAMAGE)),
        (SELECT + b"garbage", Survey(len(SELECT), Rest.DAMAGE)),
        (SELECT + b"*2\r\n$3\r\nSETxx$1\r\na\r\n", Survey(len(SELECT), Rest.DAMAGE)),
        (SELECT + b"*-1\r\n", Survey(len(SELECT), Rest.DAMAGE)),
        (b"REDIS0011" + SELECT, Survey(0, Rest.DAMAGE)),
    ],
)
def test_rest_of_a_file_is_distinguished_from_damage(content: bytes, expected: Survey) -> None:
    assert survey(content) == expected


_ARGUMENTS = st.lists(st.binary(max_size=20), min_size=1, max_size=4)


@given(st.lists(_ARGUMENTS, min_size=1, max_size=5), st.data(), st.integers(0, 600))
def test_file_that_is_cut_anywhere_is_whole_up_to_the_cut_command(
    commands: list[list[bytes]], data: st.DataObject, zeros: int
) -> None:
    written = [command(b"SET", *arguments) for arguments in commands]
    cut = data.draw(st.integers(0, len(b"".join(written))))
    ends = [len(b"".join(written[:count])) for count in range(len(written) + 1)]
    whole = max(end for end in ends if end <= cut)
    found = survey(b"".join(written)[:cut] + bytes(zeros))
    assert found == Survey(whole, Rest.NONE if cut == whole and not zeros else Rest.TORN)
