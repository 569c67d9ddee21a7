"""Work in the background: it is repeated while the store is unavailable, and what goes wrong in it is counted."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TypeVar

import structlog

from edge.foundation.backoff import Backoff
from edge.foundation.errors import Defect, EdgeError, RenewalError, Unavailable, unwrap_group
from edge.foundation.task_group import CancelledWithinError, cancellation_reported
from edge.foundation.text import Text
from edge.foundation.ticks import next_tick


class Isolated:
    """Context that logs a defect as `event` and ends its block; Unavailable and cancellation pass.

    What follows the block handles the failed item.
    """

    def __init__(self, logger: Any, event: str, **fields: object) -> None:
        self._logger = logger
        self._event = event
        self._fields = fields

    def __enter__(self) -> None:
        """Enter the block."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        """Log a defect; return whether there was one."""
        if not isinstance(error, Exception) or isinstance(error, Unavailable):
            return False
        self._logger.error(self._event, exc_info=error, **self._fields)
        return True


logger = structlog.get_logger(__name__)


class Defects:
    """The defects of one gateway since its start; `counts` has those of each background task by its name.

    A task that fails again and again is logged once, until it works again.

        try:
            await look()
        except Exception as error:  # a defect in one task must not end the jobs
            defects.record("sessions", error)
        else:
            defects.end("sessions")
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._failing: dict[str, str] = {}

    def record(self, task: str, error: Exception) -> None:
        """Count a defect of a task, which fails from now on."""
        self.counts[task] += 1
        if task not in self._failing:
            logger.error("background task failed, retrying", task=task, exc_info=error)
        self._failing[task] = type(error).__name__

    def end(self, task: str) -> None:
        """Record that a task works."""
        if self._failing.pop(task, None):
            logger.info("background task works again", task=task)

    @property
    def failing(self) -> int:
        """The number of tasks that fail now."""
        return len(self._failing)

    def problems(self) -> Iterable[Text]:
        """Yield a sentence when tasks fail now."""
        if self._failing:
            names = ", ".join(f"{task} ({kind})" for task, kind in sorted(self._failing.items()))
            yield Text.of("background task fails: {names}", names=names)


_PATIENCE_S = 25.0
"""Longer than the longest wait of such a task plus the timeout of a call to the store."""


class Heartbeat:
    """Records when each critical task, known by its name, last called the store, successfully or not.

    A task hangs after `patience_s` seconds without a call. A task that has ended does not hang.
    """

    def __init__(self, patience_s: float = _PATIENCE_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience_s = patience_s
        self._clock = clock
        self._last: dict[str, tuple[asyncio.Task[object], float] | None] = {}

    def expect(self, names: Iterable[str]) -> None:
        """Watch tasks of these names, each from its first beat."""
        self._last |= dict.fromkeys(names)

    def beat(self) -> None:
        """Record a beat of the calling task."""
        task = asyncio.current_task()
        if task and task.get_name() in self._last:
            self._last[task.get_name()] = task, self._clock()

    def stalled(self) -> list[str]:
        """Name the tasks that hang."""
        now = self._clock()
        beats = [(name, *beat) for name, beat in self._last.items() if beat]
        return [name for name, task, at in beats if now - at > self._patience_s and not task.done()]


RETRY_INTERVAL_S = 1.0
_PAUSES_S = (1.0, 60.0)
_STABLE_INTERVALS = 5
"""The end of a service that ran for so many intervals is a new outage."""

_T = TypeVar("_T")


async def retry_while_unavailable(
    task: str, attempt: Callable[[], Awaitable[_T]], interval_s: float = RETRY_INTERVAL_S
) -> _T:
    """Repeat an attempt until it does not raise Unavailable; return its result."""
    reported = False
    while True:
        try:
            result = await attempt()
        except Unavailable as error:
            if not reported:
                logger.warning("store unavailable, retrying", task=task, reason=error.message)
            reported = True
            await asyncio.sleep(interval_s)
        else:
            if reported:
                logger.info("store available again", task=task)
            return result


async def poll_store(defects: Defects, task: str, attempt: Callable[[], Awaitable[None]], interval_s: float) -> None:
    """Run an attempt at once and at each tick of the interval, until cancelled.

    An unavailable store leaves attempts out. A defect is recorded, and the next tick tries again. Other errors with
    advice for a person end it.
    """
    reported = False
    while True:
        try:
            with cancellation_reported():
                await attempt()
        except Unavailable as error:
            if not reported:
                logger.warning("store unavailable, retrying", task=task, reason=error.message)
            reported = True
        except Exception as error:  # systemd would start the gateway again, into the same defect
            if _has_advice(error):
                raise
            defects.record(task, error)
        else:
            if reported:
                logger.info("store available again", task=task)
            reported = False
            defects.end(task)
        await next_tick(interval_s)


async def restart_on_defect(
    defects: Defects,
    task: str,
    service: Callable[[], Coroutine[Any, Any, None]],
    pauses_s: tuple[float, float] = _PAUSES_S,
) -> None:
    """Run a service until it ends or is cancelled; restart it after each defect, after growing pauses.

    It works again when it has run for the longest pause. Errors with advice for a person end it.
    """
    shortest, longest = pauses_s
    backoff = Backoff(shortest, longest, stable=longest)
    loop = asyncio.get_running_loop()
    while True:
        works_again = loop.call_later(longest, defects.end, task)
        try:
            with unwrap_group():
                await _run_apart(service, task)
        except Exception as error:  # a defect in one task must not end the jobs
            if _has_advice(error):
                raise
            defects.record(task, error)
        else:
            return
        finally:
            works_again.cancel()
        await backoff.pause()


def _has_advice(error: Exception) -> bool:
    """Return whether an error is one that a person resolves, not a defect such as a refused command of ours."""
    return isinstance(error, EdgeError) and not isinstance(error, Defect)


async def _run_apart(service: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
    """Run a service in a task of its own, and raise as it does; CancelledWithinError when it ends as if cancelled.

    Work that fails while it is cancelled may raise the failure, and the cancellation would be lost. Here it is that of
    another task.
    """
    task = asyncio.get_running_loop().create_task(service(), name=name)
    try:
        await asyncio.wait((task,))
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait((task,))
        if not task.cancelled() and (error := task.exception()):
            logger.warning("background task failed at its end", task=name, exc_info=error)
        raise
    if task.cancelled():
        raise CancelledWithinError(f"what {name!r} awaited was cancelled")
    task.result()


@contextmanager
def renewal(lease: Text) -> Iterator[None]:
    """Raise RenewalError for a defect in the block, which renews a lease: `poll_store` ends then.

    Work that continues without its lease would be done twice.
    """
    try:
        yield
    except Exception as error:  # whatever it is: the lease is not renewed
        if _has_advice(error):
            raise
        raise RenewalError(Text.of("{lease} cannot be renewed: {reason}", lease=lease, reason=repr(error))) from error


async def restart_on_outage(
    task: str, service: Callable[[], Awaitable[None]], interval_s: float = RETRY_INTERVAL_S
) -> None:
    """Run a service until cancelled; restart it after each outage of the store. One outage is logged once."""
    reported = False
    while True:
        began = time.monotonic()
        try:
            await service()
        except Unavailable as error:
            if not reported or time.monotonic() - began > _STABLE_INTERVALS * interval_s:
                logger.warning("store unavailable, retrying", task=task, reason=error.message)
            reported = True
            await asyncio.sleep(interval_s)
