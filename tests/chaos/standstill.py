"""Ends a campaign that stands still, with a report of what each part waits for."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress

from edge.foundation.task_group import background_task
from tests.app.running import Gateway
from tests.chaos import stacks
from tests.chaos.observed_gateway import LOGGED
from tests.local_broker import OwnBroker

STANDS_STILL_AFTER_S = 400.0
"""A start of the gateway on a busy machine may take 300 s."""
_LOGS_STACKS_WITHIN_S = 10.0
_LINES = 100


class StandstillError(Exception):
    """A campaign stands still."""


@asynccontextmanager
async def standstill_reported(
    progress: Callable[[], object],
    gateway: Callable[[], Gateway | None],
    broker: OwnBroker,
    after_s: float = STANDS_STILL_AFTER_S,
) -> AsyncIterator[None]:
    """Write a report and raise StandstillError in a group when `progress` returns the same for `after_s` seconds."""
    async with background_task(_watch(progress, gateway, broker, after_s), "standstill"):
        yield


async def _watch(
    progress: Callable[[], object], gateway: Callable[[], Gateway | None], broker: OwnBroker, after_s: float
) -> None:
    loop = asyncio.get_running_loop()
    last, since = progress(), loop.time()
    while loop.time() - since < after_s:
        await asyncio.sleep(min(1.0, after_s / 4))
        if (now := progress()) != last:
            last, since = now, loop.time()
    report = "\n".join([line async for line in _report(gateway(), broker)])
    # At once: the end of the campaign may stand still too.
    sys.stderr.write(f"{report}\n")
    sys.stderr.flush()
    raise StandstillError(f"no progress for {after_s:g} s after {last}")


async def _report(gateway: Gateway | None, broker: OwnBroker) -> AsyncIterator[str]:
    yield "== tasks of the campaign"
    for line in _own_stacks():
        yield line
    if gateway is not None:
        with suppress(ProcessLookupError, TimeoutError, AssertionError):
            gateway.send(signal.SIGUSR2)
            await gateway.until(LOGGED, _LOGS_STACKS_WITHIN_S)
        yield "== gateway, its tasks and sessions last"
        for line in [*gateway.log][-3 * _LINES :]:
            yield line
    yield "== broker"
    log = broker.directory / "mosquitto.log"
    for line in (await asyncio.to_thread(log.read_text, errors="replace")).splitlines()[-_LINES:]:
        yield line


def _own_stacks() -> Iterator[str]:
    for name, frames in stacks.tasks_of(asyncio.get_running_loop()):
        yield name
        yield from (f"  {frame}" for frame in frames)
    yield from stacks.sessions_of(asyncio.get_running_loop())
