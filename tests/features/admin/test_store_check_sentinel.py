"""The examination of a store behind Sentinel: its sentinels and its data nodes."""

import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edge.features.admin.store_check import examine_store
from edge.foundation.errors import SettingsError, Unavailable
from edge.model.finding import Level, PublicHealthFinding, public_form
from edge.store.open_store import open_store
from edge.store.store_repair import RepairReport
from tests.store.sentinel_line import SERVICE, Line, open_line, until


async def examined(line: Line, unique: str, **settings: Any) -> dict[str, PublicHealthFinding]:
    findings = examine_store(line.settings(unique, **settings))
    return {str(finding.subject): public_form(finding) async for finding in findings}


async def test_sentinels_of_a_sound_line_are_ok(tmp_path: Path, unique: str) -> None:
    async with open_line(tmp_path, nodes=1) as line:
        finding = (await examined(line, unique))["sentinels"]
    assert finding.level is Level.OK
    assert "all 3 confirm the primary 127.0.0.1:" in finding.found


async def test_repair_of_the_store_of_this_machine_is_a_finding_of_a_line(tmp_path: Path, unique: str) -> None:
    """Only the journal said it: the gateway of a line may not read the files of its store."""
    report = RepairReport(at=1_700_000_000_000, file="a.aof", cut_bytes=512, whole_bytes=99, kept="/var/lib/valkey/x")
    file = tmp_path / "1700000000000.json"
    file.write_bytes(msgspec.json.encode(report))
    async with open_line(tmp_path, nodes=1) as line:
        finding = (await examined(line, unique, repair_reports=str(tmp_path)))["store repaired"]
        file.unlink()
        after = await examined(line, unique, repair_reports=str(tmp_path))
    assert (finding.level, "512 bytes were cut off" in finding.found) == (Level.WARNING, True)
    assert finding.advice.endswith(f"rm -r /var/lib/valkey/x {file}")
    assert "store repaired" not in after


async def test_silent_sentinel_is_a_warning(tmp_path: Path, unique: str) -> None:
    async with open_line(tmp_path, nodes=1) as line:
        line.sentinels[1].signal(signal.SIGSTOP)
        findings = await examined(line, unique)
        line.sentinels[1].signal(signal.SIGCONT)
    assert findings[f"sentinel 127.0.0.1:{line.sentinels[1].port}"].level is Level.WARNING


async def test_silent_sentinels_are_named_while_they_keep_the_store_closed(tmp_path: Path, unique: str) -> None:
    """`edge doctor` named no server at all while no majority confirmed the primary."""
    found = set()

    async def examine(line: Line) -> None:
        async for finding in examine_store(line.settings(unique)):
            found.add((str(finding.subject), finding.level))

    async with open_line(tmp_path) as line:
        for sentinel in line.sentinels[:2]:
            sentinel.signal(signal.SIGSTOP)
        await line.nodes[1].kill()
        with pytest.raises(Unavailable, match="the primary of the store is not confirmed"):
            await examine(line)
        for sentinel in line.sentinels[:2]:
            sentinel.signal(signal.SIGCONT)
    silent = {(f"sentinel 127.0.0.1:{sentinel.port}", Level.WARNING) for sentinel in line.sentinels[:2]}
    assert found == silent | {(f"replica 127.0.0.1:{line.nodes[1].port}", Level.WARNING)}


async def test_quorum_below_the_majority_is_refused_at_first_and_reported_later(tmp_path: Path, unique: str) -> None:
    async with open_line(tmp_path, nodes=1, quorum=1) as line:
        with pytest.raises(SettingsError, match="with a quorum of 1 of 3 sentinels, expected at least 2"):
            await examined(line, unique)
        for sentinel in line.sentinels:
            await sentinel.call("SENTINEL", "SET", SERVICE, "quorum", "2")
        async with open_store(line.settings(unique), "edge"):
            pass
        await line.sentinels[0].call("SENTINEL", "SET", SERVICE, "quorum", "1")
        finding = (await examined(line, unique))["sentinel quorum"]
    assert finding.level is Level.FAILING
    assert finding.advice == "Correct it on every sentinel: SENTINEL SET line quorum 2"


async def test_replicas_of_a_sound_line_are_ok(tmp_path: Path, unique: str) -> None:
    async with open_line(tmp_path) as line:
        findings = await examined(line, unique)
        assert findings["replicas"].found.startswith(f"127.0.0.1:{line.nodes[1].port} (0 B, ")


async def test_replica_that_was_killed_is_a_warning(tmp_path: Path, unique: str) -> None:
    async with open_line(tmp_path) as line:
        await line.nodes[1].kill()
        subject = f"replica 127.0.0.1:{line.nodes[1].port}"

        async def is_found() -> bool:
            return subject in await examined(line, unique)

        await until(is_found)
        finding = (await examined(line, unique))[subject]
    assert finding.level is Level.WARNING
    assert "is away: Redis does not answer" in finding.found


async def test_replica_without_append_only_file_is_a_warning(tmp_path: Path, unique: str) -> None:
    async with open_line(tmp_path, replica="appendonly no\n") as line:
        finding = (await examined(line, unique))[f"replica 127.0.0.1:{line.nodes[1].port}"]
    assert finding.advice == "Set `appendonly yes` in its configuration."
