"""Recognizes the results of a removed job: its tombstone holds their digests.

A gateway that lags, or a broker that repeats a message, brings an answer that was taken before the removal. A result
that was never taken has no digest there.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from edge.ports.result_trace import MOST_LEVELS, RESULTS_MEMBER, without_files
from edge.sfc.run import Run, commands_with_result
from edge.store import dedupe
from edge.store.client import Store

MOST_TAKEN = 400
"""The most digests in a tombstone; a run keeps 200 earlier attempts."""


def digests_of(run: Run) -> tuple[str, ...]:
    """Return the digests of all results of a run, at most `MOST_TAKEN`, those of the newest attempts last."""
    found = [each for command, result in commands_with_result(run) for each in _digests(command, result)]
    return tuple(dict.fromkeys(found))[-MOST_TAKEN:]


async def was_taken(store: Store, job_id: str, command_id: str, result: Any) -> bool:
    """Return whether a removed job had this result of a command; its files do not count."""
    return _of_content(command_id, result) in await store.fetch(dedupe.query_taken(store.keys, job_id))


async def had_result(store: Store, job_id: str, command_id: str, result_id: str) -> bool:
    """Return whether a removed job had a result of a command with this id."""
    return _of_id(command_id, result_id) in await store.fetch(dedupe.query_taken(store.keys, job_id))


def _digests(command_id: str, result: Any) -> Iterator[str]:
    yield _of_content(command_id, result)
    for result_id in _result_ids(result):
        yield _of_id(command_id, result_id)


def _of_content(command_id: str, result: Any) -> str:
    return dedupe.digest(command_id, msgspec.json.encode(without_files(result)).decode())[:_DIGITS]


def _of_id(command_id: str, result_id: str) -> str:
    return dedupe.digest(f"{command_id} id", result_id)[:_DIGITS]


_DIGITS = 16


def _result_ids(result: Any, levels: int = MOST_LEVELS) -> Iterator[str]:
    if not isinstance(result, Mapping) or not levels:
        return
    if isinstance(result_id := result.get("result_id"), str):
        yield result_id
    parts = result.get(RESULTS_MEMBER)
    for each in parts.values() if isinstance(parts, Mapping) else ():
        yield from _result_ids(each, levels - 1)
