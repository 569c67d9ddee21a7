"""The runs: each a hash of small fields, of which a step rewrites only what it changed.

The hash also holds an outbox for each instance that decided about the run: the commands that may not have been sent
yet. The decision that asks for a command adds it; the next decision or `remove_sent` removes it.
"""

import base64
import functools
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from edge.sfc.history import StoredDecision
from edge.sfc.identifiers import command_prefix
from edge.sfc.run import Run, waits
from edge.sfc.run_fields import changed_fields, decode, encode
from edge.sfc.signal import Phase
from edge.store import version
from edge.store.client import Store
from edge.store.commit import NOTHING, Commit, at_revision, fields, join, operation, spread
from edge.store.keys import Keys
from edge.store.reads import Entry, entries, escape_pattern, scan_keys
from edge.store.version import Document

DATASCHEMA = "https://aschamberger.github.io/schemas/microdcs/sfc-execution/v2.0.0/"
_OWN_FIELDS = ("rev", "_dataschema", version.FIELD, "recipe")
_OUTBOX = "outbox:"
_OWN_IDS = frozenset({Phase.START, Phase.RESET})
"""The phases whose command has an id of its own; the others have that of a start which was sent before."""
_VERSION = {version.FIELD: str(version.current_version(Document.RUN))}
NO_CONSUMER = ""
"""The consumer of a visitor of the store: any instance takes over its outbox."""


class Outgoing(msgspec.Struct, frozen=True, array_like=True):
    """A command that a decision asks for; run and recipe hold the rest of it, the id that of a stop.

    Stored as an array without the part of the id that all commands of the run share.
    """

    phase: Phase
    command_id: str
    step: str
    type_id: str
    again: bool = False
    """Whether it may have been sent before."""


Outbox = tuple[Outgoing, ...]


class StoredRun(msgspec.Struct, frozen=True):
    """A run as it is stored; `recipe` is the JSON text it started with and keeps, compressed in the store.

    The first `revision` of a run is the instant of its start, and each decision adds one: a job that was removed and
    stored again has other revisions, so that a cached copy of the earlier run is never used for the later one. `outbox`
    holds the commands of this instance, `elsewhere` those of the others, as they were read; `outdated` says that it was
    read in the form of an older version.
    """

    run: Run
    revision: int
    recipe: str
    outbox: Outbox = ()
    outdated: bool = False
    elsewhere: Outbox = ()

    @property
    def unsent(self) -> frozenset[str]:
        """Return the ids of the commands that no instance has sent yet."""
        waiting = (*self.outbox, *self.elsewhere)
        return frozenset(
            outgoing.command_id for outgoing in waiting if outgoing.phase in _OWN_IDS and not outgoing.again
        )


def create(keys: Keys, started: StoredRun, consumer: str) -> Commit:
    """Write a run that starts, in place of any earlier run of the same job."""
    run = started.run
    key = keys.sfc_execution(run.job_id)
    own = {"rev": str(started.revision), "_dataschema": DATASCHEMA, **_VERSION, "recipe": _compressed(started.recipe)}
    if started.outbox:
        own[_OUTBOX + consumer] = _text(run, started.outbox)
    return join(
        (
            operation("DEL", key, keys.sfc_history(run.job_id)),
            spread("HSET", (key,), fields(own | encode(run))),
            operation("SADD", keys.sfc_active_jobs(), run.job_id),
            _index_waits(keys, run.scope, run.job_id, {}, waits(run)),
        )
    )


def update(keys: Keys, before: StoredRun, after: StoredRun, consumer: str) -> Commit:
    """Write what a decision changed of a run; guarded by the revision it was decided on."""
    run = after.run
    key = keys.sfc_execution(run.job_id)
    written, removed = changed_fields(before.run, run)
    if before.outdated:
        written = encode(run) | _VERSION
    outbox, emptied = _changed_outbox(before, after.outbox, consumer)
    return join(
        (
            unchanged(keys, before),
            spread("HSET", (key,), fields({"rev": str(after.revision)} | outbox | written)),
            spread("HDEL", (key,), (*emptied, *removed)),
            _index_waits(keys, run.scope, run.job_id, waits(before.run), waits(run)),
        )
    )


def bump_revision(keys: Keys, stored: StoredRun) -> Commit:
    """Invalidate every cached copy of a run."""
    key = keys.sfc_execution(stored.run.job_id)
    return join((unchanged(keys, stored), operation("HSET", key, "rev", str(stored.revision + 1))))


def remove_sent(keys: Keys, stored: StoredRun, left: Outbox, consumer: str) -> Commit:
    """Remove sent commands from an outbox: only `left` remains. A later decision has removed them itself."""
    key = keys.sfc_execution(stored.run.job_id)
    outbox, emptied = _changed_outbox(stored, left, consumer)
    return join((unchanged(keys, stored), spread("HSET", (key,), fields(outbox)), spread("HDEL", (key,), emptied)))


def take_over(keys: Keys, stored: StoredRun, outbox: Outbox, consumer: str, former: str) -> Commit:
    """Move the outbox of another instance into that of `consumer`, which holds `outbox` then."""
    key = keys.sfc_execution(stored.run.job_id)
    return join(
        (
            unchanged(keys, stored),
            operation("HSET", key, "rev", str(stored.revision + 1), _OUTBOX + consumer, _text(stored.run, outbox)),
            operation("HDEL", key, _OUTBOX + former),
        )
    )


def queue_commands(keys: Keys, stored: StoredRun, outbox: Outbox, consumer: str) -> Commit:
    """Queue commands of a run to be sent by an instance."""
    key = keys.sfc_execution(stored.run.job_id)
    return join(
        (
            unchanged(keys, stored),
            operation("HSET", key, "rev", str(stored.revision + 1), _OUTBOX + consumer, _text(stored.run, outbox)),
            operation("SADD", keys.sfc_active_jobs(), stored.run.job_id),
        )
    )


def resume_after_loss(keys: Keys, revision: int, stored: StoredRun, outbox: Outbox, consumer: str) -> Commit:
    """Resume a run whose later revision the store has lost, with a revision beyond every cached copy."""
    key = keys.sfc_execution(stored.run.job_id)
    written = {_OUTBOX + consumer: _text(stored.run, outbox)} if outbox else {}
    active = operation("SADD", keys.sfc_active_jobs(), stored.run.job_id) if outbox else Commit()
    return join((unchanged(keys, stored), spread("HSET", (key,), fields({"rev": str(revision + 1)} | written)), active))


def _changed_outbox(before: StoredRun, after: Outbox, consumer: str) -> tuple[dict[str, str], Sequence[str]]:
    """Return the field to write and the one to remove."""
    if before.outbox == after:
        return {}, ()
    return ({_OUTBOX + consumer: _text(before.run, after)}, ()) if after else ({}, (_OUTBOX + consumer,))


def _text(run: Run, outbox: Outbox) -> str:
    prefix = command_prefix(run.job_id, run.run_id)
    rows = [
        (
            outgoing.phase,
            outgoing.command_id.removeprefix(prefix),
            outgoing.step,
            outgoing.type_id,
            *((True,) if outgoing.again else ()),
        )
        for outgoing in outbox
    ]
    return msgspec.json.encode(rows).decode()


_PLAIN = "{"
"""The beginning of a recipe that an earlier version stored."""


@functools.lru_cache(maxsize=64)
def _compressed(recipe: str) -> str:
    return base64.b64encode(zlib.compress(recipe.encode())).decode()


@functools.lru_cache(maxsize=64)
def recipe_text(stored: str) -> str:
    """Return the JSON text of a recipe as a run stores it. Raises ValueError or zlib.error for another text."""
    return stored if stored.startswith(_PLAIN) else zlib.decompress(base64.b64decode(stored)).decode()


def unchanged(keys: Keys, stored: StoredRun) -> Commit:
    """Return the guard that the run is unchanged since it was read."""
    return Commit(guards=(at_revision(keys.sfc_execution(stored.run.job_id), stored.revision),))


def finish(keys: Keys, job_id: str) -> Commit:
    """Remove a job from the active jobs: its run has ended, and no command is left to send."""
    return operation("SREM", keys.sfc_active_jobs(), job_id)


def set_timer(keys: Keys, job_id: str, due: int | None) -> Commit:
    """Set the instant at which a job is due; None for never."""
    if due is None:
        return operation("ZREM", keys.sfc_timers(), job_id)
    return operation("ZADD", keys.sfc_timers(), due, job_id)


def _index_waits(keys: Keys, scope: str, job_id: str, before: Mapping[str, int], after: Mapping[str, int]) -> Commit:
    if before == after:
        return NOTHING
    return join(
        operation("ZADD", keys.sfc_waits(scope, type_id), after[type_id], job_id)
        if type_id in after
        else operation("ZREM", keys.sfc_waits(scope, type_id), job_id)
        for type_id in sorted(before.keys() | after.keys())
        if before.get(type_id) != after.get(type_id)
    )


async def load(store: Store, job_id: str) -> StoredRun | None:
    """Read the run of a job, with the outbox of this instance; None when it has none."""
    stored: dict[str, str] = await store.execute("HGETALL", store.keys.sfc_execution(job_id))
    return read_run(stored, store.consumer) if stored else None


def read_run(stored: Mapping[str, str], consumer: str) -> StoredRun:
    """Return the run that a stored document states, with the outbox of an instance.

    Raises DocumentTooNew, and ValueError or KeyError for a damaged one.
    """
    found = version.upgrade_fields(Document.RUN, stored)
    own = (*_OWN_FIELDS, *(name for name in found if name.startswith(_OUTBOX)))
    run = decode({name: text for name, text in found.items() if name not in own})
    prefix, boxes = command_prefix(run.job_id, run.run_id), {name: found[name] for name in own if name in found}
    outbox = _read(prefix, boxes.pop(_OUTBOX + consumer, None))
    others = (text for name, text in boxes.items() if name.startswith(_OUTBOX))
    elsewhere = tuple(outgoing for text in others for outgoing in _read_foreign(prefix, text))
    outdated = version.is_outdated(Document.RUN, stored)
    return StoredRun(run, int(found["rev"]), recipe_text(found["recipe"]), outbox, outdated, elsewhere)


def _read(prefix: str, text: str | None) -> Outbox:
    outgoings = msgspec.json.decode(text, type=Outbox) if text else ()
    return tuple(
        msgspec.structs.replace(outgoing, command_id=prefix + outgoing.command_id)
        if _is_short(outgoing.command_id)
        else outgoing
        for outgoing in outgoings
    )


def _read_foreign(prefix: str, text: str) -> Outbox:
    """Read the outbox of another instance, or of a foreign program; nothing where it cannot be read."""
    try:
        return _read(prefix, text)
    except msgspec.DecodeError:
        return ()


def _is_short(command: str) -> bool:
    """Return whether an id lacks job and run: `action/attempt`, with `/reset` or not."""
    return command.count("/") < _SLASHES


_SLASHES = 3
"""How many slashes a whole command id has at least."""


async def load_outbox(store: Store, job_id: str, consumer: str) -> Outbox:
    """Read the commands of a job that an instance may not have sent."""
    head, text = await store.execute("HMGET", store.keys.sfc_execution(job_id), "run", _OUTBOX + consumer)
    return _read(command_prefix(job_id, msgspec.json.decode(head)["run_id"]), text) if text else ()


async def jobs_with_outbox(store: Store, consumer: str) -> list[str]:
    """Return the jobs with commands in the outbox of an instance."""
    job_ids = await active_jobs(store)
    replies = await store.read(
        [("HEXISTS", store.keys.sfc_execution(job_id), _OUTBOX + consumer) for job_id in job_ids]
    )
    return [job_id for job_id, exists in zip(job_ids, replies, strict=True) if exists]


async def active_jobs(store: Store) -> list[str]:
    """Return the jobs whose run has not ended or that have commands to send."""
    jobs = await store.execute("SMEMBERS", store.keys.sfc_active_jobs())
    return sorted(jobs)


async def revisions(store: Store) -> dict[str, int]:
    """Return the revision of the run of each active job; another revision shows a new decision.

    An unreadable one is -1.
    """
    job_ids = await active_jobs(store)
    replies = await store.read([("HGET", store.keys.sfc_execution(job_id), "rev") for job_id in job_ids])
    return {
        job_id: int(reply) if reply.isdecimal() else -1
        for job_id, reply in zip(job_ids, replies, strict=True)
        if reply is not None
    }


async def longest_waiting(store: Store, scope: str, type_id: str, exclude: Collection[str] = ()) -> str | None:
    """Return the job, not excluded, that has waited longest for an event of a type; None when none waits."""
    jobs = await store.execute("ZRANGE", store.keys.sfc_waits(scope, type_id), 0, len(exclude))
    return next((job_id for job_id in jobs if job_id not in exclude), None)


async def plan_remove_waits(store: Store, scope: str, job_id: str) -> Commit:
    """Remove a job from all indexes of waiting jobs, without reading its run, which may be unreadable."""
    pattern = store.keys.sfc_waits(escape_pattern(scope), "*")
    found = {key async for batch in scan_keys(store, pattern) for key in batch}
    return join(operation("ZREM", key, job_id) for key in sorted(found))


async def jobs_with_timer(store: Store, job_ids: Sequence[str]) -> set[str]:
    """Return the jobs among these that have a timer."""
    replies = await store.read([("ZSCORE", store.keys.sfc_timers(), job_id) for job_id in job_ids])
    return {job_id for job_id, score in zip(job_ids, replies, strict=True) if score is not None}


async def due(store: Store, now: int, limit: int) -> list[str]:
    """Return the jobs that are due, the longest overdue first."""
    jobs: list[str] = await store.execute("ZRANGE", store.keys.sfc_timers(), "-inf", now, "BYSCORE", "LIMIT", 0, limit)
    return jobs


async def next_due(store: Store) -> int | None:
    """Return the earliest instant at which a job is due."""
    reply = await store.execute("ZRANGE", store.keys.sfc_timers(), 0, 0, "WITHSCORES")
    return int(float(reply[0][1])) if reply else None


MOST_DECISIONS = 10_000
"""The number of decisions that the history of a run keeps, unless a setting says otherwise."""
_TRIM_INTERVAL = 256
"""The oldest decisions go together, at most so many at a time: each one would cost a command of its own."""
_INSTANT = 10**12
"""From here on the second part of an id is an instant since the Unix epoch, else the milliseconds since the start."""


def append_decision(keys: Keys, job_id: str, record: StoredDecision, started_at: int, most: int) -> Commit:
    """Append a record of a run; beyond `most` records the oldest go, a tenth of them at most."""
    key, after = keys.sfc_history(job_id), record.at - started_at
    # The clock may have been set back before the start of the run.
    second = after if 0 <= after < _INSTANT else record.at
    added = operation("XADD", key, f"{record.number}-{second}", record.name, record.text)
    beyond, at_a_time = record.number - most, max(1, min(_TRIM_INTERVAL, most // 10))
    if beyond > 0 and (beyond - 1) % at_a_time == 0:
        return join((added, operation("XTRIM", key, "MAXLEN", most - at_a_time + 1)))
    return added


async def load_decisions(store: Store, job_id: str, started_at: int, newest: int = 0) -> list[StoredDecision]:
    """Return the `newest` records of the decisions about a job that was started at an instant, the oldest first.

    With 0 all that are kept.
    """
    bound = ("COUNT", newest) if newest else ()
    found = entries(await store.execute("XREVRANGE", store.keys.sfc_history(job_id), "+", "-", *bound))
    return read_decisions(found, started_at)[::-1]


def read_decisions(found: Iterable[Entry], started_at: int) -> list[StoredDecision]:
    """Return the records that entries of a history state, of a job that was started at an instant."""
    stored_decisions = []
    for entry in found:
        number, _, second = entry.entry_id.partition("-")
        at = int(second) if int(second) >= _INSTANT else started_at + int(second)
        ((name, text),) = entry.fields.items()
        stored_decisions.append(StoredDecision(int(number), at, name, text))
    return stored_decisions
