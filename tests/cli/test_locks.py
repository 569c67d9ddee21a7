"""`edge locks` shows locks, holds a lock during a command, and deletes locks of dead owners."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from edge.store import audit
from edge.store.client import Store
from tests.access.test_locks import JOB, TOOL, owners, put
from tests.cli.calling import Edge

pytestmark = pytest.mark.slow


async def test_locks_are_listed_with_owners_and_waiters(edge: Edge, store: Store) -> None:
    await put(store, JOB, "J1", "anna", "ben")
    await put(store, TOOL, "wrench", "dead", lease_ms=-1)
    shown = (await edge("locks", "list")).output
    assert [line.split()[:3] for line in shown.splitlines()[1:]][:2] == [
        ["equipment", "wrench", "dead"],
        ["job", "J1", "anna"],
    ]
    assert "waits" in shown
    assert "expired" in shown
    (only,) = json.loads((await edge("locks", "list", "job", "--json")).output)
    assert (only["owner"], only["waiters"]) == ("anna", ["ben"])


async def test_locks_of_dead_owners_are_deleted_and_recorded(edge: Edge, store: Store) -> None:
    await put(store, JOB, "J1", "anna")
    await put(store, JOB, "J2", "dead", lease_ms=-1)
    refused = await edge("locks", "delete")
    assert refused.exit_code == 1
    assert "'anna' holds the lock of job 'J1' and is alive" in refused.output
    assert (await edge("locks", "delete", "job", "--id", "J2")).output == "job J2: deleted\n"
    assert (await edge("locks", "delete", "--force")).output == "job J1: deleted\n"
    assert (await edge("locks", "delete")).output == "no lock deleted\n"
    statuses = [json.loads(sealed_record.text)["status"] async for sealed_record in audit.read_all(store)]
    assert [status[:5] for status in statuses] == ["'anna", "Good", "Good", "Good"]


async def test_lock_is_held_while_a_command_runs(edge: Edge, store: Store, settings_file: Path) -> None:
    held = ("locks", "hold", "--reason", "test", "--settings", str(settings_file), "job", "J1")
    code = "import sys; print(flush=True); sys.exit(int(sys.stdin.readline()))"
    holder = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "edge", *held, sys.executable, "-c", code), stdin=PIPE, stdout=PIPE
    )
    assert holder.stdin
    assert holder.stdout
    async with asyncio.timeout(60):
        await holder.stdout.readline()
        assert len(await owners(store, JOB, "J1")) == 1
        assert (await edge("locks", "hold", "--reason", "other", "job", "J1", "true")).exit_code == 1
        holder.stdin.write(b"3\n")
        assert await holder.wait() == 3
    assert await owners(store, JOB, "J1") == []


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("list", "cards"), 2),
        (("hold", "job", "J1", "true"), 2),
        (("hold", "job", "J1", "--reason", "x"), 2),
        (("hold", "--reason", "x", "job", "J1", "/no/such/program"), 127),
        (("list", "--rpc", "http://127.0.0.1"), 2),
    ],
)
async def test_wrong_arguments_have_their_own_exit_status(edge: Edge, arguments: tuple[str, ...], status: int) -> None:
    assert (await edge("locks", *arguments)).exit_code == status


@pytest.mark.parametrize("url", ["unix:///no/such/socket", "tcp://127.0.0.1:1"])
async def test_gateway_that_cannot_be_reached_is_named_at_once(edge: Edge, url: str) -> None:
    """Before, the answer was "no answer to 'publish' within 10 s", after ten seconds."""
    async with asyncio.timeout(5):
        ended = await edge("locks", "list", "--rpc", url)
    assert ended.exit_code == 1
    assert f"no connection to {url}" in ended.output
