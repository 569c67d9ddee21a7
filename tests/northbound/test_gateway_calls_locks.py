"""Sidecars list and delete locks; a lock of a live owner is deleted only with force; deletions are recorded."""

import json
from typing import Any

import pytest

from edge.access.audit_trail import AuditTrail
from edge.access.locks import hold_lock
from edge.foundation.errors import Refused
from edge.model.cloudevent import CloudEvent
from edge.northbound.gateway_calls import LockCalls
from edge.store import audit
from edge.store.client import Store
from tests.access.test_locks import JOB, put


def event(data: Any = None) -> CloudEvent:
    return CloudEvent(id="1", source="/stand", type="locks", data=data)


async def test_locks_are_listed_by_kind_and_object(store: Store) -> None:
    calls = LockCalls(store, AuditTrail(store, "gw-1", 1000, lambda: 5))
    async with hold_lock(store, JOB, "J1", "anna", "looks at it"):
        assert [lock.id for lock in (await calls.list_locks(event(), "rpc")).locks] == ["J1"]
        assert (await calls.list_locks(event({"Kind": "station"}), "rpc")).locks == ()
        assert (await calls.list_locks(event({"Ids": ["J2"]}), "rpc")).locks == ()
    assert (await calls.list_locks(event(), "rpc")).locks == ()


async def test_deletion_is_refused_while_the_owner_lives(store: Store) -> None:
    trail = AuditTrail(store, "gw-1", 1000, lambda: 5)
    calls = LockCalls(store, trail)
    await put(store, JOB, "J1", "anna")
    with pytest.raises(Refused, match="is alive"):
        await calls.delete(event(), "rpc")
    await trail.write_waiting()
    (deleted,) = (await calls.delete(event({"Force": True, "By": "ben"}), "topic")).locks
    assert (deleted.id, deleted.holder.owner) == ("J1", "anna")
    assert (await calls.list_locks(event(), "rpc")).locks == ()
    records = [json.loads(sealed_record.text) async for sealed_record in audit.read_all(store)]
    assert [(record["kind"], record["user"], record["action"], record["subject"]) for record in records] == [
        ("rpc.call", "/stand", "locks delete", "job J1"),
        ("mes.call", "ben", "locks delete --force", "job J1"),
    ]
    assert records[0]["status"].startswith("'anna' holds the lock")


@pytest.mark.parametrize("data", [7, {"Kind": "cards"}, {"Ids": "J1"}])
async def test_wrong_arguments_are_refused(store: Store, data: object) -> None:
    calls = LockCalls(store, AuditTrail(store, "gw-1", 1000, lambda: 5))
    with pytest.raises(Refused, match="does not have the arguments"):
        await calls.delete(event(data), "rpc")
    assert set(calls.table) == {f"com.github.aschamberger.microdcs.locks.{text}.v1" for text in ("List", "Delete")}
