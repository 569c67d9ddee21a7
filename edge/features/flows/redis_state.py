"""Stores flows in Redis: a hash for each flow and cycle, a JSON text for each node task, indexes of instants."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from edge.features.flows import keys as flows_keys
from edge.features.flows import node_task
from edge.features.flows.cycle import Cycle, CycleStatus, NodeStatus, NodeTask
from edge.features.flows.keys import node_task_id
from edge.features.flows.node_task import ReceivedResult, WorkerProgress, decode_result, encode_task
from edge.features.flows.state import CycleRecord, FlowChange, FlowRecord, FlowStatus, KeptAnswer, Written
from edge.foundation.text import Text
from edge.store.client import Store, block_ms
from edge.store.commit import NOTHING, Commit, Committed, at_revision, fields, join, operation, spread
from edge.store.keys import Keys
from edge.store.reads import entries, escape_pattern, scan_keys

CYCLE_LIFETIME_MS: Final = 7 * 86_400_000
NODE_TASK_LIFETIME_MS: Final = 86_400_000
_MOST_SIGNALS: Final = 1000
_BATCH: Final = 100
_NEVER: Final = "+inf"


class RedisFlowState:
    """The flow state that all gateways on a store share."""

    def __init__(self, store: Store, also: Commit = NOTHING) -> None:
        """Add `also` to each change: what must be stored exactly when the change is."""
        self._store = store
        self._also = also

    async def load_flow(self, flow_id: str) -> FlowRecord | None:
        """Return a flow; None when there is none."""
        stored = await self._store.execute("HGETALL", flows_keys.flow(self._store.keys, flow_id))
        return _flow(stored) if stored else None

    async def flow_ids(self) -> list[str]:
        """Return the ids of all flows, sorted."""
        return sorted(await self._store.execute("ZRANGE", flows_keys.flow_schedule(self._store.keys), 0, -1))

    async def revisions(self) -> Mapping[str, int]:
        """Return the revision of each flow by its id."""
        ids = await self.flow_ids()
        found = await self._store.read([("HGET", flows_keys.flow(self._store.keys, flow_id), "rev") for flow_id in ids])
        return {flow_id: int(revision) for flow_id, revision in zip(ids, found, strict=True) if revision is not None}

    async def load_cycle(self, flow: FlowRecord, number: int) -> CycleRecord | None:
        """Return a cycle of a flow; None when it is not stored. An expired node task has the state registered."""
        keys = self._store.keys
        stored = await self._store.execute("HGETALL", flows_keys.flow_cycle(keys, flow.flow_id, number))
        if not stored:
            return None
        nodes = msgspec.json.decode(stored["nodes"], type=list[str])
        texts = await self._store.read(
            [("GET", flows_keys.node_task(keys, flow.flow_id, number, node)) for node in nodes]
        )
        found = {node: text for node, text in zip(nodes, texts, strict=True) if text is not None}
        large = [node for node, text in found.items() if node_task.has_large_output(text)]
        outputs = await self._store.read(
            [("GET", flows_keys.node_output(keys, flow.flow_id, number, node)) for node in large]
        )
        apart = dict(zip(large, outputs, strict=True))
        tasks = {
            node: node_task.decode(found[node], apart.get(node)) if node in found else NodeTask() for node in nodes
        }
        return CycleRecord(
            cycle=Cycle(flow.flow_id, number, int(stored["at"]), tasks, flow.memory),
            document=stored.get("document", ""),
            owner=stored["owner"],
            started_at=int(stored["started_at"]),
            ended_at=int(stored["ended_at"]) if stored["ended_at"] else None,
            revision=int(stored["rev"]),
        )

    async def progress(self, cycle: Cycle) -> Mapping[str, WorkerProgress]:
        """Return the progress of the running nodes of a cycle that workers have begun."""
        running = [node for node, task in cycle.tasks.items() if task.status is NodeStatus.RUNNING]
        keys = self._store.keys
        texts = await self._store.read(
            [("GET", flows_keys.node_worker(keys, cycle.flow_id, cycle.number, node)) for node in running]
        )
        found = zip(running, texts, strict=True)
        return {node: msgspec.json.decode(text, type=WorkerProgress) for node, text in found if text is not None}

    async def answers(self, cycle: Cycle) -> Mapping[str, KeptAnswer]:
        """Return the answers of equipment to running nodes of a cycle that were stored before the nodes ended."""
        running = [node for node, task in cycle.tasks.items() if task.status is NodeStatus.RUNNING]
        keys = [_answer_key(self._store.keys, cycle.flow_id, cycle.number, node) for node in running]
        texts = await self._store.read([("GET", key) for key in keys])
        pairs = zip(running, texts, strict=True)
        kept_answers = {node: msgspec.json.decode(text, type=KeptAnswer) for node, text in pairs if text is not None}
        return {node: answer for node, answer in kept_answers.items() if answer.attempt == cycle.tasks[node].attempts}

    async def commit(self, change: FlowChange) -> bool:
        """Write a change; return False without a write when a stored record has changed since it was read."""
        keys = self._store.keys
        parts = [
            *([_save_flow(keys, change.flow)] if change.flow else ()),
            *([_save_cycle(keys, change.cycle, change.expired)] if change.cycle else ()),
            *([_announce(keys, _flow_id(change))] if change.announced else ()),
            *(
                operation("XADD", flows_keys.node_work(keys, task.kind), "*", "task", encode_task(task))
                for task in change.queued
            ),
            spread("XDEL", (flows_keys.node_results(keys),), change.taken),
        ]
        return isinstance(await self._store.commit(join((*parts, self._also))), Committed)

    async def delete(self, flow: FlowRecord) -> bool:
        """Remove a flow with all its data; return False when its stored record has changed since it was read."""
        keys = self._store.keys
        key = flows_keys.flow(keys, flow.flow_id)
        cycles = f"{escape_pattern(flows_keys.flow_cycle(keys, flow.flow_id, 0)[:-1])}*"
        tasks = flows_keys.node_task(keys, flow.flow_id, 0, "")[: -len("0_")]
        found = {text async for batch in scan_keys(self._store, cycles) for text in batch}
        found |= {
            text
            async for batch in scan_keys(self._store, f"{escape_pattern(tasks)}*")
            for text in batch
            if re.match(r"\d+_", text.removeprefix(tasks))
        }
        found |= await self._node_keys(
            flow.flow_id, [text for text in found if text.startswith(flows_keys.flow(keys, ""))]
        )
        parts = (
            Commit(guards=(at_revision(key, flow.revision),)),
            operation("DEL", key),
            spread("DEL", (), sorted(found)),
            operation("ZREM", flows_keys.flow_schedule(keys), flow.flow_id),
            operation("SREM", flows_keys.flows_running(keys), flow.flow_id),
            _announce(keys, flow.flow_id),
            self._also,
        )
        return isinstance(await self._store.commit(join(parts)), Committed)

    async def _node_keys(self, flow_id: str, cycles: Sequence[str]) -> set[str]:
        """Return the keys of all nodes of cycles: some may be written between the scan and the deletion."""
        keys = self._store.keys
        texts = await self._store.read([("HGET", key, "nodes") for key in cycles])
        return {
            build(keys, flow_id, int(key.rpartition(":")[2]), node)
            for key, text in zip(cycles, texts, strict=True)
            for node in (msgspec.json.decode(text, type=list[str]) if text else ())
            for build in (flows_keys.node_task, flows_keys.node_output, flows_keys.node_worker, _answer_key)
        }

    async def due(self, now: int, limit: int) -> list[str]:
        """Return the flows whose next cycle is due, the longest overdue first."""
        key = flows_keys.flow_schedule(self._store.keys)
        found: list[str] = await self._store.execute("ZRANGE", key, "-inf", now, "BYSCORE", "LIMIT", 0, limit)
        return found

    async def next_due(self) -> int | None:
        """Return the earliest instant at which a cycle is due."""
        key = flows_keys.flow_schedule(self._store.keys)
        reply = await self._store.execute("ZRANGE", key, "-inf", f"({_NEVER}", "BYSCORE", "LIMIT", 0, 1, "WITHSCORES")
        return int(float(reply[0][1])) if reply else None

    async def running(self) -> list[str]:
        """Return the ids of the flows that have a running cycle, sorted."""
        return sorted(await self._store.execute("SMEMBERS", flows_keys.flows_running(self._store.keys)))

    async def announced(self, position: str) -> tuple[str, list[str]]:
        """Wait a few seconds for announced changes after a position; return the next position and the flows."""
        key = flows_keys.flow_signals(self._store.keys)
        if not position:
            latest = list(entries(await self._store.execute("XREVRANGE", key, "+", "-", "COUNT", 1)))
            return (latest[0].entry_id if latest else "0-0"), []
        reply = await self._store.wait("XREAD", "BLOCK", block_ms(), "STREAMS", key, position)
        found = [entry for raw in (reply or {}).get(key, ()) for entry in entries(raw)]
        return (found[-1].entry_id if found else position), [entry.fields["flow"] for entry in found]

    async def results(self, position: str) -> tuple[str, list[ReceivedResult]]:
        """Wait a few seconds for results of workers after a position; return the next position and the results."""
        key = flows_keys.node_results(self._store.keys)
        reply = await self._store.wait("XREAD", "COUNT", _BATCH, "BLOCK", block_ms(), "STREAMS", key, position or "0")
        found = [entry for raw in (reply or {}).get(key, ()) for entry in entries(raw)]
        results = [ReceivedResult(item.entry_id, decode_result(item.fields["result"])) for item in found]
        return (found[-1].entry_id if found else position), results


def keep_answer(keys: Keys, task_id: str, answer: KeptAnswer) -> Commit:
    """Keep the answer of equipment for a node task, until its cycle has ended."""
    return operation("SET", flows_keys.node_answer(keys, task_id), _json(answer), "PX", NODE_TASK_LIFETIME_MS)


def _answer_key(keys: Keys, flow: str, cycle: int, node: str) -> str:
    return flows_keys.node_answer(keys, node_task_id(flow, cycle, node))


def _flow_id(change: FlowChange) -> str:
    if change.flow:
        return change.flow.after.flow_id
    return change.cycle.after.cycle.flow_id if change.cycle else ""


def _announce(keys: Keys, flow_id: str) -> Commit:
    return operation("XADD", flows_keys.flow_signals(keys), "MAXLEN", "~", _MOST_SIGNALS, "*", "flow", flow_id)


def _save_flow(keys: Keys, written: Written[FlowRecord]) -> Commit:
    before, after = written.before, written.after
    known = _flow_fields(before) if before else {}
    changed = {name: text for name, text in _flow_fields(after).items() if known.get(name) != text}
    key = flows_keys.flow(keys, after.flow_id)
    parts = [
        Commit(guards=(at_revision(key, before.revision if before else 0),)),
        spread("HSET", (key,), fields(changed)),
    ]
    if before is None or before.next_at != after.next_at:
        score = _NEVER if after.next_at is None else after.next_at
        parts.append(operation("ZADD", flows_keys.flow_schedule(keys), score, after.flow_id))
    if (before is not None and before.in_cycle) != after.in_cycle:
        parts.append(operation("SADD" if after.in_cycle else "SREM", flows_keys.flows_running(keys), after.flow_id))
    return join(parts)


def _flow_fields(flow: FlowRecord) -> dict[str, str]:
    return {
        "rev": str(flow.revision),
        "id": flow.flow_id,
        "config": flow.document,
        "status": flow.status.value,
        "last_cycle": str(flow.last_cycle),
        "last_at": _text(flow.last_at),
        "next_execution": _text(flow.next_at),
        "created_at": str(flow.created_at),
        "in_cycle": "1" if flow.in_cycle else "",
        "resume_at": _text(flow.resume_at),
        "followed_step": _json(flow.followed_step),
        "ended": _json(flow.ended),
        "missed": str(flow.missed),
        "memory": _json(flow.memory),
        "reason": str(flow.reason),
        "text": _json(flow.reason) if isinstance(flow.reason, Text) else "",
        "first_kept": str(flow.first_kept),
        "cycle_bytes": str(flow.cycle_bytes),
    }


def _flow(stored: Mapping[str, str]) -> FlowRecord:
    return FlowRecord(
        flow_id=stored["id"],
        document=stored["config"],
        created_at=int(stored["created_at"]),
        status=FlowStatus(stored["status"]),
        last_cycle=int(stored["last_cycle"]),
        last_at=_instant(stored["last_at"]),
        next_at=_instant(stored["next_execution"]),
        in_cycle=bool(stored["in_cycle"]),
        # A flow that an older release wrote has neither.
        resume_at=_instant(stored.get("resume_at", "")),
        followed_step=msgspec.json.decode(stored.get("followed_step", "null"), type=tuple[int, int] | None),
        ended=msgspec.json.decode(stored["ended"], type=dict[CycleStatus, int]),
        missed=int(stored["missed"]),
        memory=msgspec.json.decode(stored["memory"], type=dict[str, Any]),
        reason=_reason(stored["reason"], stored.get("text", "")),
        # An older release kept `kept_cycles` of them.
        first_kept=int(stored.get("first_kept", max(0, int(stored["last_cycle"]) - 100_000))),
        cycle_bytes=int(stored.get("cycle_bytes", 0)),
        revision=int(stored["rev"]),
    )


def _reason(english: str, text: str) -> str | Text:
    """Return the text of a reason; the words of a person, and those of an older release, as they stand."""
    return msgspec.json.decode(text, type=Text) if text else english


def _save_cycle(keys: Keys, written: Written[CycleRecord], expired: Iterable[int]) -> Commit:
    before, after = written.before, written.after
    cycle = after.cycle
    changed = _changed_cycle_fields(before, after) if before else _cycle_fields(after)
    key = flows_keys.flow_cycle(keys, cycle.flow_id, cycle.number)
    parts = [
        Commit(guards=(at_revision(key, before.revision if before else 0),)),
        spread("HSET", (key,), fields(changed)),
        *_save_tasks(keys, before.cycle if before else None, cycle, has_ended=after.ended_at is not None),
    ]
    if after.ended_at is not None:
        parts.append(operation("PEXPIRE", key, CYCLE_LIFETIME_MS))
        # The flow as it was when the cycle began is of no use for a cycle that has ended.
        parts.append(operation("HDEL", key, "document"))
    for number in expired:
        gone = [flows_keys.node_task(keys, cycle.flow_id, number, node) for node in cycle.tasks]
        large = [flows_keys.node_output(keys, cycle.flow_id, number, node) for node in cycle.tasks]
        workers = [flows_keys.node_worker(keys, cycle.flow_id, number, node) for node in cycle.tasks]
        answers = [_answer_key(keys, cycle.flow_id, number, node) for node in cycle.tasks]
        parts.append(
            spread("DEL", (flows_keys.flow_cycle(keys, cycle.flow_id, number),), (*gone, *large, *workers, *answers))
        )
    return join(parts)


def _changed_cycle_fields(before: CycleRecord, after: CycleRecord) -> dict[str, str]:
    """Return the fields that differ; those that never change in a cycle are not encoded again."""
    known = _moving_cycle_fields(before)
    return {name: text for name, text in _moving_cycle_fields(after).items() if known[name] != text}


def _cycle_fields(record: CycleRecord) -> dict[str, str]:
    cycle = record.cycle
    return {
        **_moving_cycle_fields(record),
        "flow_id": cycle.flow_id,
        "cycle": str(cycle.number),
        "at": str(cycle.at),
        "started_at": str(record.started_at),
        "nodes": _json(list(cycle.tasks)),
        "document": record.document,
    }


def _moving_cycle_fields(record: CycleRecord) -> dict[str, str]:
    return {
        "rev": str(record.revision),
        "status": record.cycle.status.value,
        "ended_at": _text(record.ended_at),
        "owner": record.owner,
    }


def _save_tasks(keys: Keys, before: Cycle | None, cycle: Cycle, *, has_ended: bool) -> Iterable[Commit]:
    """Write the node tasks that changed; one that is only registered needs no key.

    Lifetimes begin with the end of the cycle: a task that expired before would be run again.
    """
    lifetime = ("PX", NODE_TASK_LIFETIME_MS) if has_ended else ()
    for node, task in cycle.tasks.items():
        known = before.tasks[node] if before else None
        if task.status is NodeStatus.REGISTERED or (task is known and not has_ended):
            continue
        key = flows_keys.node_task(keys, cycle.flow_id, cycle.number, node)
        if task != known:
            texts = node_task.encode(cycle.flow_id, cycle.number, node, task)
            yield operation("SET", key, texts.task, *lifetime)
            if texts.output is not None:
                large = flows_keys.node_output(keys, cycle.flow_id, cycle.number, node)
                yield operation("SET", large, texts.output, *lifetime)
        elif has_ended:
            yield operation("PEXPIRE", key, NODE_TASK_LIFETIME_MS)
            if isinstance(task.output, str | list | dict):  # any other is too small to be stored apart
                yield operation(
                    "PEXPIRE", flows_keys.node_output(keys, cycle.flow_id, cycle.number, node), NODE_TASK_LIFETIME_MS
                )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _text(instant: int | None) -> str:
    return "" if instant is None else str(instant)


def _instant(text: str) -> int | None:
    return int(text) if text else None
