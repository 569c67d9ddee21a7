"""The store is examined on real servers, well and badly configured."""

import asyncio
import shutil
from pathlib import Path

import pytest

from edge.config import RedisSettings
from edge.features.admin.store_check import examine_store
from edge.foundation.errors import SettingsError, Unavailable
from edge.foundation.instant import now_ms
from edge.model.equipment_connection import ConnectionFault, ConnectionState
from edge.model.equipment_health import EquipmentHealth, EquipmentReport, OpenSafing
from edge.model.finding import Level, PublicHealthFinding, public_form
from edge.model.plant import Component
from edge.store import components, ended_jobs, equipment_memory
from edge.store.bounds import CountLimits
from edge.store.client import Store
from edge.store.embedded import server_program
from edge.store.observer import StoreObserver, observer_of
from edge.store.open_store import open_store
from edge.store.store_repair import repair_store
from tests.store.servers import own_server

UNSAFE = "the tool may still be active, not confirmed since 2023-11-14 22:13:20Z: release: MID 0042 declined"
RELEASE = OpenSafing(what="release", since=1_700_000_000_000, tries=7, reason="MID 0042 declined")


async def examined(settings: RedisSettings) -> dict[str, PublicHealthFinding]:
    return {str(finding.subject): public_form(finding) async for finding in examine_store(settings)}


async def on(directory: Path, *options: str, durability: str = "any") -> dict[str, PublicHealthFinding]:
    async with own_server(directory, *options) as server:
        return await examined(RedisSettings(url=server.url, durability=durability))  # type: ignore[arg-type]


async def test_clock_of_the_store_that_differs_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine of the doctor is a minute ahead."""

    def observer(store: Store) -> StoreObserver:
        return observer_of(store, lambda: now_ms() + 60_000)

    monkeypatch.setattr("edge.features.admin.store_check.observer_of", observer)
    findings = await on(tmp_path)
    assert findings["store server"].level is Level.WARNING
    assert "60.0 s behind that of this machine" in findings["store server"].found


async def test_well_configured_store_is_ok(tmp_path: Path) -> None:
    async with own_server(tmp_path, "--maxmemory", "64mb") as server:
        settings = RedisSettings(url=server.url)
        async with open_store(settings, "edge") as store:
            await store.execute("SET", f"{settings.prefix}:lease:instance:edge", "token", "PX", 60_000)
        findings = await examined(settings)
    assert [finding.level for finding in findings.values()] == [Level.OK] * 5
    assert findings["gateway"].found == "at work: edge"
    assert findings["store"].found.startswith("Valkey 9")
    assert "appendfsync always" in findings["store durability"].found
    assert "of 64 MiB" in findings["store memory"].found


async def test_repaired_store_is_a_warning_with_the_kept_file(tmp_path: Path) -> None:
    directory = tmp_path / "store"
    settings = RedisSettings(url=f"embedded:{directory}", durability="any")
    async with open_store(settings, None) as store:
        await store.execute("SET", "job", "stored")
    with (directory / "appendonlydir" / "appendonly.aof.1.incr.aof").open("ab") as file:
        file.write(bytes(512))
    finding = (await examined(settings))["store repaired"]
    assert (finding.level, "512 bytes were cut off" in finding.found) == (Level.WARNING, True)
    assert f"rm -r {directory}/repaired/" in finding.advice


async def test_damage_that_a_person_cut_off_is_not_called_a_power_cut(tmp_path: Path) -> None:
    """The loss of all jobs was reported as that of the last two seconds."""
    directory = tmp_path / "store"
    settings = RedisSettings(url=f"embedded:{directory}", durability="any")
    async with open_store(settings, None) as store:
        await store.execute("SET", "job", "stored")
    with (directory / "appendonlydir" / "appendonly.aof.1.incr.aof").open("ab") as file:
        file.write(b"garbage")
    repair_store(directory, Path(server_program()), 1, discard_damage=True)
    finding = (await examined(settings))["store repaired"]
    assert "7 bytes from a damage on were cut off by hand" in finding.found
    assert "Jobs and results in them are gone" in finding.advice


@pytest.mark.parametrize(
    ("options", "subject", "reported"),
    [
        (("--appendonly", "no"), "store durability", "changes are not written to disk"),
        (("--appendfsync", "no"), "store durability", "the system decides when to write"),
        ((), "store memory", "without a limit"),
        ((), "gateway", "no gateway works on this store"),
    ],
)
async def test_store_without_durability_or_limits_is_a_warning(
    tmp_path: Path, options: tuple[str, ...], subject: str, reported: str
) -> None:
    finding = (await on(tmp_path, *options))[subject]
    assert finding.level is Level.WARNING
    assert reported in finding.found
    assert finding.advice


async def test_server_that_drops_transactions_at_its_start_fails(tmp_path: Path) -> None:
    options = ("--user", "default", "off", "--user", *["gateway", "on", ">secret", "~*", "&*", "+@all"])
    async with own_server(tmp_path, *options, program=shutil.which("redis-server") or "") as server:
        url = server.url.replace("unix://", "unix://gateway:secret@")
        findings = await examined(RedisSettings(url=url, durability="any"))
    is_affected = not findings["store"].found.startswith("Valkey 9")
    assert (findings["store durability"].level is Level.FAILING) is is_affected
    assert ("user default off ~* &* +@all" in findings["store durability"].advice) is is_affected


async def test_nearly_full_store_is_reported_with_its_fill_level(tmp_path: Path) -> None:
    async with own_server(tmp_path, "--maxmemory", "4mb") as server:
        settings = RedisSettings(url=server.url)
        process = await asyncio.create_subprocess_exec(
            *("redis-cli", "-s", server.url[7:], "SETRANGE", "filler", str(5 << 19), "x"),
            stdout=asyncio.subprocess.DEVNULL,
        )
        await process.wait()
        findings = await examined(settings)
    assert findings["store memory"].level in {Level.WARNING, Level.FAILING}
    assert "shorten [retention]" in findings["store memory"].advice


async def test_store_without_required_durability_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="appendonly is no"):
        await on(tmp_path, "--appendonly", "no", durability="required")


async def test_unavailable_store_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="Redis does not answer"):
        await examined(RedisSettings(url=f"unix://{tmp_path}/none.sock"))


async def test_embedded_store_is_a_warning() -> None:
    findings = await examined(RedisSettings(url="embedded:"))
    assert findings["store"].level is Level.WARNING


REASON = "MID 0001 declined: another client is connected"
DECLINED = ConnectionState(connected=False, since=1, fault=ConnectionFault.DECLINED, reason=REASON)


async def test_equipment_report_of_a_gateway_is_shown(tmp_path: Path) -> None:
    equipment = (
        EquipmentHealth(
            name="wrench", kind="openprotocol", connected=False, connection=DECLINED, failed=1, last_error="jammed"
        ),
        EquipmentHealth(name="old", kind="mqtt", connected=False),
        EquipmentHealth(name="eye", kind="vision", connected=True, outstanding=2),
        EquipmentHealth(name="printer", kind="mqtt", refused=3, last_error="no JSON"),
        EquipmentHealth(name="scanner", kind="mqtt"),
        EquipmentHealth(name="press", kind="openprotocol", connected=True, safing=1, open_safing=(RELEASE,)),
    )
    async with own_server(tmp_path, "--maxmemory", "64mb") as server:
        settings = RedisSettings(url=server.url)
        async with open_store(settings, "edge") as store:
            await store.execute("SET", f"{settings.prefix}:lease:instance:edge", "token", "PX", 60_000)
            await store.commit(
                equipment_memory.save_report(store.keys, "edge", EquipmentReport(at=1, equipment=equipment))
            )
        findings = await examined(settings)
    reported = [(findings[name].level, findings[name].found) for name in findings if name.startswith("equipment")]
    none = "open commands: 0, failed: 0"
    assert reported == [
        (
            Level.FAILING,
            f"not connected: declined: {REASON}; open commands: 0, failed: 1, messages refused: 0; last: jammed",
        ),
        (Level.FAILING, f"not connected; {none}, messages refused: 0"),
        (Level.OK, "connected; open commands: 2, failed: 0, messages refused: 0"),
        (Level.WARNING, f"{none}, messages refused: 3; last: no JSON"),
        (Level.OK, f"presence unknown; {none}, messages refused: 0"),
        (
            Level.FAILING,
            f"{UNSAFE}; {none}, messages refused: 0",
        ),
    ]
    assert findings["equipment wrench of edge"].advice.startswith("Close the other client")
    assert findings["equipment old of edge"].advice.startswith("Switch it on")


@pytest.mark.skipif(not shutil.which("redis-server"), reason="no redis-server here")
async def test_problems_of_a_working_gateway_are_shown(tmp_path: Path) -> None:
    async with own_server(tmp_path, "--maxmemory", "64mb") as server:
        settings = RedisSettings(url=server.url)
        async with open_store(settings, "edge") as store:
            await store.execute("SET", f"{settings.prefix}:lease:instance:edge", "token", "PX", 60_000)
            for name in ("edge", "gone"):
                ill = Component(
                    id=name, kind="gateway", version="1", started=0, host="box", problems="broker refuses: a"
                )
                await store.commit(components.put(store.keys, ill))
        findings = await examined(settings)
    assert (findings["problems of edge"].level, findings["problems of edge"].found) == (
        Level.WARNING,
        "broker refuses: a",
    )
    assert "problems of gone" not in findings


async def test_undelivered_results_near_their_limit_are_reported(tmp_path: Path) -> None:
    async with own_server(tmp_path) as server:
        settings = RedisSettings(url=server.url)
        async with open_store(settings, "edge") as store:
            for job_id in ("J1", "J2"):
                await store.commit(ended_jobs.add_undelivered(store.keys, "station-1", job_id, 1))
        levels = {}
        for limit in (2, 4, 5):
            limits = CountLimits(("station-1",), marks=9, undelivered=limit)
            findings = {
                str(finding.subject): public_form(finding) async for finding in examine_store(settings, limits=limits)
            }
            levels[limit] = findings["undelivered results of station-1"].level
            assert findings["marks of messages"].level is Level.OK
    assert levels == {2: Level.FAILING, 4: Level.WARNING, 5: Level.OK}
