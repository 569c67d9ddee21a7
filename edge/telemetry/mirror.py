"""Mirrors a set of another system every second; members that join or leave are occurrences."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from edge.errors import Unavailable
from edge.instant import Clock
from edge.rules.sample_lines import Occurrence
from edge.store import mirrors, telemetry
from edge.store.client import Store
from edge.store.commit import join
from edge.store.mirrors import Freshness, MirrorState
from edge.telemetry.batch import Batch, encode_batch
from edge.telemetry.interest import RuleInterest

logger = structlog.get_logger(__name__)

INTERVAL_S: Final = 1.0


class SetMirror:
    """Keeps a copy of a set; `job_of` returns the running job to which a member belongs."""

    def __init__(
        self,
        store: Store,
        name: str,
        read: Callable[[], Awaitable[frozenset[str]]],
        clock: Clock,
        interest: RuleInterest,
        job_of: Callable[[str], str | None],
        stream_length: int = 1_000,
    ) -> None:
        self.is_stale = False
        """Whether the last read failed; the copy is the last good one."""
        self._store = store
        self._name = name
        self._read = read
        self._clock = clock
        self._interest = interest
        self._job_of = job_of
        self._stream_length = stream_length

    async def run(self, interval_s: float = INTERVAL_S) -> None:
        """Mirror until cancelled; a failed read keeps the last good copy."""
        while True:
            try:
                await self.copy_once()
            except Unavailable as error:
                if not self.is_stale:
                    advice = error.advice
                    logger.warning("mirror stale", mirror=self._name, reason=error.message, advice=advice)
                self.is_stale = True
                # If it is the store that is unavailable, the readers of the copy are, too.
                with contextlib.suppress(Unavailable):
                    await self._mark_stale()
            else:
                if self.is_stale:
                    logger.info("mirror up to date", mirror=self._name)
                self.is_stale = False
            await asyncio.sleep(interval_s)

    async def copy_once(self) -> None:
        """Read the set; write it with the occurrences of its changes in one commit. Raises Unavailable."""
        current = await self._read()
        known = await mirrors.load(self._store, self._name)
        state = await self._state()
        if current == known and state and state.freshness is Freshness.CURRENT:
            return
        now = self._clock()
        changes = [("left", each) for each in sorted(known - current)]
        changes += [("joined", each) for each in sorted(current - known)]
        lines = [
            Occurrence(now, f"{self._name}.{verb}", self._job_of(member), {"member": member})
            for verb, member in changes
        ]
        wanted = tuple(each for each in lines if self._interest.wants(each))
        commit = [mirrors.save(self._store.keys, self._name, current, now)]
        if wanted:
            commit.append(
                telemetry.append(self._store.keys, encode_batch(Batch("", 0, now, wanted)), self._stream_length)
            )
        await self._store.commit(join(commit))

    async def _mark_stale(self) -> None:
        """Mark the copy as stale, once; one that was not read since the start stays unread."""
        state = await self._state()
        if state and state.freshness is Freshness.CURRENT:
            keys = self._store.keys
            await self._store.commit(mirrors.save_state(keys, self._name, Freshness.STALE, self._clock()))

    async def _state(self) -> MirrorState | None:
        return (await mirrors.load_states(self._store, (self._name,))).get(self._name)
