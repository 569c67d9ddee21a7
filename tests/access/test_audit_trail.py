"""Each audit record is stored once, in one chain, also after outages of the store."""

import asyncio
import json
from pathlib import Path

import msgspec
import pytest
import structlog
from structlog.testing import capture_logs

from edge.access.audit_trail import AuditTrail, append, find_faults, limit_of_callers, open_trail
from edge.config import RedisSettings
from edge.foundation.errors import Unavailable
from edge.foundation.task_group import background_task
from edge.model.audit import AuditRecord
from edge.store import audit
from edge.store.client import Store
from edge.store.open_store import open_store
from tests.conftest import WaitUntil
from tests.store.servers import own_server

KEEP = 1000


def record(action: str) -> AuditRecord:
    return AuditRecord(at=1, kind="cli.call", instance="gw-1", user="anna", action=action)


async def actions(store: Store) -> list[str]:
    return [json.loads(sealed_record.text)["action"] async for sealed_record in audit.read_all(store)]


async def faults(store: Store) -> list[str]:
    sealed_records = [sealed_record async for sealed_record in audit.read_all(store)]
    return [fault.problem for fault in find_faults(sealed_records, await audit.load_head(store), KEEP)]


async def test_records_of_several_writers_form_one_chain(store: Store) -> None:
    await asyncio.gather(*(append(store, [record(f"{number}a"), record(f"{number}b")], KEEP) for number in range(20)))
    found = await actions(store)
    assert sorted(found) == sorted(f"{number}{part}" for number in range(20) for part in "ab")
    assert [text[:-1] for text in found[::2]] == [text[:-1] for text in found[1::2]]
    assert await faults(store) == []


async def test_trail_writes_records_and_copies_them_to_the_log(store: Store, wait_until: WaitUntil) -> None:
    with structlog.testing.capture_logs() as logged:
        async with open_trail(store, "gw-1", KEEP, lambda: 1) as trail:
            trail.record(record("Start"))
            await wait_until(lambda: not trail.waiting)
    assert await actions(store) == ["Start"]
    assert [(entry["event"], entry["audit"], entry["user"]) for entry in logged] == [("command", "cli.call", "anna")]


async def test_secret_in_a_comment_is_hidden_in_store_and_log(store: Store) -> None:
    with structlog.testing.capture_logs() as logged:
        async with open_trail(store, "gw-1", KEEP, lambda: 1) as trail:
            trail.record(msgspec.structs.replace(record("Store"), comment="by token=hunter3"))
    (kept,) = [sealed_record.text async for sealed_record in audit.read_all(store)]
    assert "hunter3" not in kept
    assert "hunter3" not in str(logged)
    assert json.loads(kept)["comment"] == "by token=***"


async def test_closed_trail_writes_the_queued_records(store: Store) -> None:
    async with open_trail(store, "gw-1", KEEP, lambda: 1) as trail:
        for number in range(700):
            trail.record(record(str(number)))
    assert await actions(store) == [str(number) for number in range(700)]
    assert await faults(store) == []


async def test_outage_of_the_store_loses_the_oldest_records_only(tmp_path: Path, wait_until: WaitUntil) -> None:
    async with own_server(tmp_path) as server, open_store(RedisSettings(url=server.url), "gw-1") as store:
        trail = AuditTrail(store, "gw-1", KEEP, lambda: 1, most_waiting=3)
        await server.kill()
        for number in range(5):
            trail.record(record(str(number)))
        async with background_task(trail.run(), "audit"):
            await server.start()
            await wait_until(lambda: not trail.waiting)
        first, *others = [json.loads(sealed_record.text) async for sealed_record in audit.read_all(store)]
        assert (first["kind"], first["status"]) == ("audit.lost", "2")
        assert [other["action"] for other in others] == ["2", "3", "4"]
        assert await faults(store) == []


async def test_commit_of_unknown_effect_is_not_written_twice(store: Store) -> None:
    lost_reply = _LosesFirstReply(store)
    trail = AuditTrail(lost_reply, "gw-1", KEEP, lambda: 1)  # type: ignore[arg-type]
    trail.record(record("Start"))
    with pytest.raises(Unavailable):
        await trail.write_waiting()
    await append(store, [record("Stop")], KEEP)
    await trail.write_waiting()
    assert await actions(store) == ["Start", "Stop"]


async def test_text_that_is_not_utf8_is_escaped_and_truncated(store: Store) -> None:
    await append(store, [record("Start \udcff" + "x" * 2000)], KEEP)
    (action,) = await actions(store)
    assert action.startswith("Start \\udcff")
    assert len(action) < 1010


async def test_foreign_value_at_the_key_does_not_stop_the_trail(store: Store, wait_until: WaitUntil) -> None:
    await store.execute("SET", store.keys.audit(), "foreign")
    async with open_trail(store, "gw-1", KEEP, lambda: 1) as trail:
        trail.record(record("Start"))
        await wait_until(lambda: not trail.waiting)
        await store.execute("DEL", store.keys.audit())
        trail.record(record("Stop"))
        await wait_until(lambda: not trail.waiting)
    assert await actions(store) == ["", "Stop"]


async def test_unreadable_head_begins_a_new_chain_and_is_reported(store: Store) -> None:
    await append(store, [record("Start")], KEEP)
    await store.execute("SET", store.keys.audit_head(), "garbage")
    await append(store, [record("Stop")], KEEP)
    assert await actions(store) == ["Start", "Stop"]
    assert await faults(store)


class _LosesFirstReply:
    """A store whose first commit is done, but whose reply is lost."""

    ha = None

    def __init__(self, store: Store) -> None:
        self._store = store
        self.keys = store.keys
        self.execute = store.execute
        self._is_lost = False

    async def commit(self, commit: object) -> object:
        result = await self._store.commit(commit)  # type: ignore[arg-type]
        if not self._is_lost:
            self._is_lost = True
            raise Unavailable("the connection was lost")
        return result


def test_dropped_records_of_a_user_are_counted() -> None:
    now = 0.0
    limit, eve = limit_of_callers(clock=lambda: now), "eve"
    assert sum(limit.try_acquire(eve) for _ in range(500)) == 60
    assert limit.try_acquire("anna")
    now = 61.0
    with capture_logs() as logs:
        assert limit.try_acquire(eve)
    assert [(entry["user"], entry["dropped"]) for entry in logs] == [("eve", 440)]
