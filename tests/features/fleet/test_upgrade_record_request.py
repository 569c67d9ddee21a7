"""The gateway passes an upgrade to the root unit and follows it, also across a restart."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from edge.features.fleet.signature import FleetState
from edge.features.fleet.upgrade_record import (
    UpgradeRecord,
    UpgradeReply,
    follow_upgrade,
    only_upgrade,
    request_upgrade,
    save,
)
from edge.foundation.errors import Refused, Unavailable

ID = "0123456789abcdef"
BEGUN = UpgradeRecord(id=ID, state=FleetState.EXECUTING, exp=1000)


@asynccontextmanager
async def root_unit(socket: Path, answer: bytes, received: list[bytes]) -> AsyncIterator[None]:
    """Serve a socket as the root unit does."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.read())
        writer.write(answer)
        writer.close()

    server = await asyncio.start_unix_server(serve, str(socket))
    try:
        yield
    finally:
        server.close()


def reply(state: FleetState, reason: str = "") -> bytes:
    return msgspec.json.encode(UpgradeReply(state=state, reason=reason)) + b"\n"


async def test_upgrade_command_is_passed_on_unchanged_and_returns_its_output(tmp_path: Path) -> None:
    received: list[bytes] = []
    save(tmp_path, msgspec.structs.replace(BEGUN, state=FleetState.SUCCESSFUL, output="2 replaces 1"))
    async with root_unit(tmp_path / "s", reply(FleetState.EXECUTING), received):
        assert await request_upgrade(ID, "a.b.c", tmp_path / "s", tmp_path) == "2 replaces 1"
    assert received == [b"a.b.c\n"]


async def test_refusal_of_the_root_unit_is_the_reason_of_the_command(tmp_path: Path) -> None:
    async with root_unit(tmp_path / "s", reply(FleetState.REFUSED, "key unknown"), []):
        with pytest.raises(Refused, match="key unknown"):
            await request_upgrade(ID, "a.b.c", tmp_path / "s", tmp_path)


async def test_missing_socket_is_reported_with_the_command_to_enable_it(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"systemctl enable --now microdcs-edge-upgrade\.socket"):
        await request_upgrade(ID, "a.b.c", tmp_path / "none", tmp_path)


@pytest.mark.parametrize("answer", [b"", b"nonsense\n", b"x" * 70_000])
async def test_unreadable_answer_fails_the_upgrade(tmp_path: Path, answer: bytes) -> None:
    async with root_unit(tmp_path / "s", answer, []):
        with pytest.raises(Unavailable, match="did not answer"):
            await request_upgrade(ID, "a.b.c", tmp_path / "s", tmp_path)


async def test_running_upgrade_is_followed_to_its_end(tmp_path: Path) -> None:
    save(tmp_path, BEGUN)
    with only_upgrade(tmp_path):
        following = asyncio.create_task(follow_upgrade(ID, tmp_path, 0.01))
        await asyncio.sleep(0.05)
        assert not following.done()
        save(tmp_path, msgspec.structs.replace(BEGUN, state=FleetState.FAILED, reason="no room"))
        with pytest.raises(Refused, match="no room"):
            await following


async def test_upgrade_without_a_process_is_reported_as_interrupted(tmp_path: Path) -> None:
    save(tmp_path, BEGUN)
    with pytest.raises(Refused, match="the upgrade was interrupted"):
        await follow_upgrade(ID, tmp_path)
