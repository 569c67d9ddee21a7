"""The generation of a store: one history of its data, from the adoption of a primary to that of the next one.

A new primary may lack the last commits of the old one. What was read before it was adopted must not decide about what
is stored after it: each commit behind Sentinel is guarded by the generation under which its facts were read.
"""

import secrets
from collections.abc import Callable, Sequence
from typing import Any

import structlog
from msgspec import Struct
from msgspec.structs import replace

from edge.foundation.errors import Unavailable
from edge.foundation.text import Text
from edge.store.commit import Commit, Committed, HashField, pack, run_commit
from edge.store.connection import Command, CommandConnection
from edge.store.keys import Keys
from edge.store.query import values_of
from edge.store.sentinels import Primary

logger = structlog.get_logger(__name__)

_ID_BYTES = 6
_ADVICE = "The gateway opens the store again by itself."

GENERATION = "generation"
"""The field of an entry that names the generation in which it was written."""
_SAME_CLOCK_MS = 100
"""A smaller difference is one of the measurement, or one that NTP corrects: it does not harm deadlines."""

JobsClock = Callable[[], int]
"""Returns the instant of the jobs' clock in milliseconds since the epoch."""


class Generation(Struct, frozen=True):
    """The generation as it stands in the store; its field `begun`, in milliseconds of the jobs' clock, is for people.

    `config_epoch` is that of the failover that made the primary; `clock_ms` is what the jobs' clock is ahead of the
    clock of the primary's host, so that deadlines do not jump when another host becomes the primary. `clock_epoch` is
    the config-epoch in which a process that had followed the jobs' clock measured that difference last.
    """

    id: str
    config_epoch: int
    clock_ms: int = 0
    clock_epoch: int = 0


def generation_fields(keys: Keys) -> tuple[str, ...]:
    """Return the field of an entry that names the generation in which it is written; none without Sentinel.

    A position may repeat in the next generation: what is published under a position is also named by this.
    """
    return (GENERATION, keys.generation_id) if keys.generation_id else ()


async def load_generation(connection: CommandConnection, keys: Keys) -> tuple[Generation | None, int]:
    """Return the stored generation, and the time of the server in milliseconds since the epoch. Raises Unavailable."""
    commands: tuple[Command, ...] = (("HMGET", keys.generation(), "id", "epoch", "clock", "clock_epoch"), ("TIME",))
    (id, epoch, clock, measured), (seconds, microseconds) = values_of(commands, await connection.call(*commands))
    now = int(seconds) * 1000 + int(microseconds) // 1000
    return (Generation(id, int(epoch), int(clock or 0), int(measured or 0)) if id and epoch else None), now


def adopted_clock_ms(jobs_ms: int, server_ms: int, former_ms: int) -> int:
    """Return what the jobs' clock is ahead of the clock of a server; the former difference where it still holds."""
    measured = jobs_ms - server_ms
    return former_ms if abs(measured - former_ms) < _SAME_CLOCK_MS else measured


def next_generation(
    stored: Generation | None, config_epoch: int, new_id: str, jobs_ms: int | None, server_ms: int
) -> Generation:
    """Return the generation of a primary after what is stored at it; the stored one when nothing is to be written.

    A process that has not followed the jobs' clock, `jobs_ms` None, keeps the difference of the clocks; the first one
    that has followed it corrects the difference. Any other epoch is a new generation, also a smaller one: epochs begin
    again when a person sets up the sentinels again.
    """
    new = stored
    if new is None or new.config_epoch != config_epoch:
        new = Generation(new_id, config_epoch, *((stored.clock_ms, stored.clock_epoch) if stored else ()))
    if jobs_ms is not None and new.clock_epoch != new.config_epoch:
        clock_ms = adopted_clock_ms(jobs_ms, server_ms, new.clock_ms)
        new = replace(new, clock_ms=clock_ms, clock_epoch=new.config_epoch)
    return new


async def adopt_generation(
    connection: CommandConnection, keys: Keys, primary: Primary, jobs_clock: JobsClock | None = None
) -> Generation:
    """Return the generation of a primary; write a new one after a failover, unless another instance has done so.

    `jobs_clock` is the clock that the jobs have been following; without it the stored difference stays. Raises
    Unavailable.
    """
    while True:
        generation, now = await load_generation(connection, keys)
        jobs_ms = jobs_clock() if jobs_clock else None
        new = next_generation(generation, primary.config_epoch, secrets.token_hex(_ID_BYTES), jobs_ms, now)
        if new == generation:
            return new
        key = keys.generation()
        guards = [HashField(key, "id", generation.id if generation else None)]
        if generation is not None:
            guards.append(HashField(key, "clock", str(generation.clock_ms)))
        is_begun = generation is None or new.id != generation.id
        fields = ("id", new.id, "epoch", new.config_epoch, "clock", new.clock_ms, "clock_epoch", new.clock_epoch)
        begun = ("begun", now + new.clock_ms) if is_begun else ()
        commit = Commit(tuple(guards), (("HSET", key, *fields, *begun),))
        if isinstance(await run_commit(connection, pack(commit)), Committed):
            event = "store generation begun" if is_begun else "clock of jobs measured"
            logger.info(event, generation=new.id, primary=str(primary), clock_ms=new.clock_ms)
            return new


def _ignore(_reason: str) -> None:
    """Drop the reason: while the store is being opened the error is enough."""


class GenerationCheck:
    """Accepts connections to one primary in one generation.

    `expected` is None before the adoption: then any primary is accepted. `on_other` is called with the reason when a
    connection meets another generation.
    """

    def __init__(self, keys: Keys, primary: Primary) -> None:
        self.expected: Generation | None = None
        self.on_other: Callable[[str], None] = _ignore
        self._key = keys.generation()
        self._primary = primary

    @property
    def commands(self) -> Sequence[Command]:
        """Return the questions: the role of the server and its generation. ROLE would need a right of its own."""
        return (("INFO", "replication"), ("HGET", self._key, "id"))

    def accept(self, replies: Sequence[Any]) -> None:
        """Raise Unavailable for a replica, and for a server with another history."""
        info, generation_id = replies
        if "role:master" not in str(info).splitlines():
            self._differ(Text.of("{primary} has become a replica", primary=self._primary))
        if self.expected is not None and generation_id != self.expected.id:
            self._differ(Text.of("{primary} holds another generation of the store", primary=self._primary))

    def _differ(self, reason: Text) -> None:
        if self.expected is not None:
            self.on_other(str(reason))
        raise Unavailable(reason, _ADVICE)

    def guarded(self, commit: Commit) -> Commit:
        """Return the commit with the guard that the generation is still ours; it is checked first."""
        if self.expected is None:
            return commit
        return Commit((HashField(self._key, "id", self.expected.id), *commit.guards), commit.operations)

    def is_guarded_by(self, key: str) -> bool:
        """Return whether the failed guard at this key is that of the generation."""
        return key == self._key
