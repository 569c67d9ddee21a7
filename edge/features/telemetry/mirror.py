"""Mirrors a set of another system every second; members that join or leave are occurrences."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Final

import structlog

from edge.app.parts import GatewayParts
from edge.features.telemetry.interest import RuleInterest
from edge.features.telemetry.settings import MirrorSettings, TelemetrySettings
from edge.foundation.errors import Unavailable
from edge.foundation.instant import Clock, now_ms
from edge.ports.batch import BATCH_SIZE, encode_batch, split_lines
from edge.ports.sample_lines import Line, Occurrence
from edge.store import set_mirrors as mirrors
from edge.store import stream_of_samples as telemetry
from edge.store.client import Store
from edge.store.commit import NOTHING, Commit, Committed, join
from edge.store.other_redis import open_foreign
from edge.store.set_mirrors import Freshness, MirrorReader, MirrorState

logger = structlog.get_logger(__name__)

INTERVAL_S: Final = 1.0


class SetMirror:
    """Keeps a copy of a set while no other instance does; `jobs` reads the running jobs by their members."""

    def __init__(
        self,
        store: Store,
        name: str,
        read: Callable[[], Awaitable[frozenset[str]]],
        clock: Clock,
        interest: RuleInterest,
        jobs: Callable[[], Awaitable[Mapping[str, str]]],
        stream_length: int = 1_000,
    ) -> None:
        self.is_stale = False
        """Whether the last read failed; the copy is the last good one."""
        self._store = store
        self._name = name
        self._read = read
        self._clock = clock
        self._interest = interest
        self._jobs = jobs
        self._stream_length = stream_length
        self._producer = uuid.uuid4().hex[:12]
        self._number = 0

    async def run(self, interval_s: float = INTERVAL_S) -> None:
        """Mirror until cancelled; a failed read keeps the last good copy, which another instance may continue."""
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
                    await self._release()
            else:
                if self.is_stale:
                    logger.info("mirror up to date", mirror=self._name)
                self.is_stale = False
            await asyncio.sleep(interval_s)

    async def copy_once(self) -> None:
        """Read the set, unless another instance does; write it with the occurrences of its changes in one commit.

        Raises Unavailable.
        """
        reader = await mirrors.load_reader(self._store, self._name)
        if self._is_of_another(reader):
            return
        current = await self._read()
        known = await mirrors.load(self._store, self._name)
        state = await self._state()
        is_ours = reader.instance == self._store.consumer
        if is_ours and current == known and state and state.freshness is Freshness.CURRENT:
            return
        now = self._clock()
        changed = await self._occurrences(now, known, current) if current != known else NOTHING
        claim = mirrors.claim(self._store.keys, self._name, reader, self._store.consumer)
        saved = mirrors.save(self._store.keys, self._name, current, now)
        # Stale: another instance has become the reader.
        if isinstance(await self._store.commit(join((claim, saved, changed))), Committed) and not is_ours:
            logger.info("mirror read by this gateway", mirror=self._name, former=reader.instance)

    async def _occurrences(self, now: int, known: frozenset[str], current: frozenset[str]) -> Commit:
        """Return the entries of the changes: as many as a set of any size needs."""
        jobs = await self._jobs()
        changes = [("left", text) for text in sorted(known - current)]
        changes += [("joined", text) for text in sorted(current - known)]
        wanted: list[Line] = []
        for number, (verb, member) in enumerate(changes, 1):
            line = Occurrence(now, f"{self._name}.{verb}", jobs.get(member), {"member": member})
            if self._interest.wants(line):
                wanted.append(line)
            if not number % BATCH_SIZE:
                await asyncio.sleep(0)
        return join([entry async for entry in self._entries(now, wanted)])

    async def _entries(self, now: int, lines: list[Line]) -> AsyncIterator[Commit]:
        for batch in split_lines(self._producer, self._number + 1, now, lines):
            self._number = batch.number
            yield telemetry.append(self._store.keys, encode_batch(batch), self._stream_length)
            await asyncio.sleep(0)

    async def _release(self) -> None:
        """Release the set to another instance; mark the copy as stale, once. One that is not read stays unread."""
        reader, keys = await mirrors.load_reader(self._store, self._name), self._store.keys
        if self._is_of_another(reader):
            return
        state = await self._state()
        is_current = state is not None and state.freshness is Freshness.CURRENT
        if is_current or reader.instance == self._store.consumer:
            marked = mirrors.save_state(keys, self._name, Freshness.STALE, self._clock()) if is_current else NOTHING
            await self._store.commit(
                join((mirrors.release_reader(keys, self._name, reader, self._store.consumer), marked))
            )

    def _is_of_another(self, reader: MirrorReader) -> bool:
        return reader.is_at_work and reader.instance != self._store.consumer

    async def _state(self) -> MirrorState | None:
        return (await mirrors.load_states(self._store, (self._name,))).get(self._name)


async def open_mirrors(stack: contextlib.AsyncExitStack, core: GatewayParts, interest: RuleInterest) -> None:
    """Mirror the sets of the settings on every gateway that has them: the first that can read one does."""
    length = core.settings.section(TelemetrySettings).stream_length
    for name, section in core.settings.named(MirrorSettings).items():
        foreign = await stack.enter_async_context(open_foreign(section.url))
        read = partial(foreign.read_members, section.key)
        mirror = SetMirror(core.store, name, read, now_ms, interest, partial(_members, core), length)
        await core.keep_running_while(stack, core.instance.lease_held, f"mirror {name}", mirror.run)


async def _members(core: GatewayParts) -> Mapping[str, str]:
    """Read the running jobs by their ids and the values of their parameters. Raises Unavailable.

    Jobs that another instance has started since the last poll are among them.
    """
    await core.active_runs.look()
    loaded = core.active_runs.loaded.items()
    return jobs_by_member((job_id, loaded_job.stored.run.parameters.values()) for job_id, loaded_job in loaded)


def jobs_by_member(jobs: Iterable[tuple[str, Iterable[object]]]) -> dict[str, str]:
    """Return the first job for each member that is its id or one of its values; `jobs` are ids with values."""
    found: dict[str, str] = {}
    for job_id, values in jobs:
        for member in (job_id, *map(str, values)):
            found.setdefault(member, job_id)
    return found
