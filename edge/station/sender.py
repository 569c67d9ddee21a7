"""Sends what decisions ask for: the commands of a job in order, many jobs side by side, again until they are sent."""

import asyncio
import contextlib
from collections import Counter
from dataclasses import dataclass, field

import structlog

from edge.errors import Unavailable
from edge.faults import FaultPoint, fault_point
from edge.sfc.signal import Phase
from edge.station.dead_letter_writer import DeadLetterWriter
from edge.station.dispatch import Dispatch
from edge.station.retry import MOST_TRIES, delay_s
from edge.station.runs import Runs
from edge.store.runs import Outgoing
from edge.store.version import DocumentTooNew

logger = structlog.get_logger(__name__)

_STORE_RETRY_S = 1.0
_TIDY_S = 0.5


@dataclass(frozen=True, slots=True)
class SendQueue:
    """The commands of one job on their way: how often each met a defect, and why it was not sent when last tried."""

    more: asyncio.Event = field(default_factory=asyncio.Event)
    defects: Counter[Outgoing] = field(default_factory=Counter)
    reasons: dict[Outgoing, str] = field(default_factory=dict)


class Sender:
    """Empties the outboxes of this instance. A command is taken off once it was sent, never before."""

    def __init__(self, runs: Runs, dispatch: Dispatch) -> None:
        self._runs = runs
        self._dispatch = dispatch
        self._dead_letters = DeadLetterWriter(runs)
        self._queues: dict[str, SendQueue] = {}
        self._untidy: set[str] = set()
        self._sent_some = asyncio.Event()

    async def run(self) -> None:
        """Send until cancelled; first what this instance left to be sent when it ended."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._take_up(), name="send what was left")
                tasks.create_task(self._check_uncertain(), name="commits in doubt")
                tasks.create_task(self._tidy_up(), name="tidy the outboxes")
                while True:
                    self._enqueue(tasks, await self._runs.outgoing.get())
        finally:
            # What was sent is taken off before we go, or the next start would send it again.
            with contextlib.suppress(Unavailable):
                await self._tidy()

    def _enqueue(self, tasks: asyncio.TaskGroup, job_id: str) -> None:
        queue = self._queues.get(job_id)
        if queue is not None:
            queue.more.set()
            return
        self._queues[job_id] = SendQueue()
        tasks.create_task(self._empty(job_id), name=f"send for {job_id}")

    async def _empty(self, job_id: str) -> None:
        """Send all of a job, what cannot be sent now again later; equipment that is away holds up no other."""
        queue = self._queues[job_id]
        tries = 1
        try:
            while self._runs.unsent(job_id):
                queue.more.clear()
                await self.send_all(job_id, queue)
                if self._runs.unsent(job_id):
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(delay_s(tries)):
                            await queue.more.wait()
                    tries += 1
                    # Another instance may have ended the job meanwhile: what it stopped must not be sent any more.
                    self._runs.invalidate(job_id)
        finally:
            del self._queues[job_id]
            self._untidy.add(job_id)
            self._sent_some.set()

    async def send_all(self, job_id: str, queue: SendQueue | None = None) -> None:
        """Try once to send all of a job; its lane keeps what went wrong."""
        queue = queue or SendQueue()
        for outgoing in self._runs.unsent(job_id):
            # What was read meanwhile may say that it is sent: the last commit of one who died may come after his death.
            if outgoing in self._runs.unsent(job_id):
                await self._send(job_id, outgoing, queue)

    async def _send(self, job_id: str, outgoing: Outgoing, queue: SendQueue) -> None:
        try:
            if outgoing.phase is Phase.STOP:
                await self._dispatch.stop(self._runs.scope_of(job_id), outgoing.command_id, outgoing.type_id)
            elif (loaded := await self._runs.get(job_id)) and outgoing in self._runs.unsent(job_id):
                await self._dispatch.perform(loaded, outgoing)
        except (Unavailable, DocumentTooNew) as error:
            # Equipment may be away for days.
            if queue.reasons.get(outgoing) != error.message:
                command, queue.reasons[outgoing] = outgoing.command_id, error.message
                logger.warning("command is sent again later", job=job_id, command=command, reason=error.message)
            return
        except Exception as error:
            # A defect in one kind of equipment, or at one command, must not stop the others.
            logger.exception("command cannot be sent", job=job_id, command=outgoing.command_id)
            queue.defects[outgoing] += 1
            if queue.defects[outgoing] < MOST_TRIES or not await self._give_up(job_id, outgoing, error):
                return
        fault_point(FaultPoint.SENT)
        self._runs.sent(job_id, outgoing)

    async def _give_up(self, job_id: str, outgoing: Outgoing, error: Exception) -> bool:
        """Set a command aside; False when that, too, has to wait."""
        try:
            await self._dead_letters.command(job_id, self._runs.scope_of(job_id), outgoing, error)
        except Unavailable:
            return False
        except Exception:
            # What cannot even be given up must not stop the others.
            logger.exception("command cannot be set aside", job=job_id, command=outgoing.command_id)
            return False
        return True

    async def _take_up(self) -> None:
        while True:
            try:
                for job_id in await self._runs.left_to_send():
                    await self._runs.load_readable(job_id)
                    self._runs.outgoing.put_nowait(job_id)
            except Unavailable as error:
                logger.warning("what was left to be sent waits for the store", reason=error.message)
                await asyncio.sleep(_STORE_RETRY_S)
            else:
                return

    async def _check_uncertain(self) -> None:
        """Look what became of commits whose reply was lost, and send what they ask for."""
        while True:
            doubtful = {await self._runs.uncertain.get()}
            while not self._runs.uncertain.empty():
                doubtful.add(self._runs.uncertain.get_nowait())
            # A server that did not answer in time may carry out the commits yet.
            await asyncio.sleep(_STORE_RETRY_S)
            try:
                for job_id in tuple(doubtful):
                    # What the store holds of it to be sent by us, and we did not know, is sent then.
                    await self._runs.load_readable(job_id)
                    doubtful.remove(job_id)
            except Unavailable as error:
                logger.warning("commits in doubt wait for the store", reason=error.message)
                for job_id in doubtful:
                    self._runs.uncertain.put_nowait(job_id)

    async def _tidy_up(self) -> None:
        """Take off what no later commit did; a moment after, so that a busy job needs no trip for it."""
        while True:
            await self._sent_some.wait()
            await asyncio.sleep(_TIDY_S)
            self._sent_some.clear()
            try:
                await self._tidy()
            except Unavailable as error:
                logger.warning("outboxes wait for the store", reason=error.message)
                self._sent_some.set()

    async def _tidy(self) -> None:
        for job_id in tuple(self._untidy):
            try:
                await self._runs.tidy(job_id)
            except Unavailable:
                raise
            except Exception:
                # The others are tidied; its commands may be sent again at the next start, which equipment allows for.
                logger.exception("outbox cannot be tidied", job=job_id)
            self._untidy.discard(job_id)
