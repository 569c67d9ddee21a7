"""Each accepted result is reported exactly once, and a batch is OK only with all its bolts, in whatever order."""

import asyncio
from collections import Counter
from collections.abc import Sequence

from hypothesis import example, given, settings
from hypothesis import strategies as st

from edge.equipment.result_ledger import SINGLE, ReportedResult, ResultClaim, ResultLedger, Standing, Verdict
from edge.equipment.result_settlement import ResultSettlement
from edge.equipment.unclaimed import LateResults
from tests.equipment.recording_station import RecordingStation

SIZE = 3
HAPPENINGS = (
    *("tighten", "tighten", "lose", "request", "meanwhile", "meanwhile"),
    *("send again", "answer", "stop", "expire", "restart"),
)


class Workshop:
    """A controller with its bolts, the store, and gateways one after another; batches of three are commanded.

    `reported` are the bolts as the store has them, each entry with those of one report. The inbox survives a restart.
    With `has_frames` the controller sends a result until it is acknowledged, as with Open Protocol; without, as with
    IJT, it reports what is missing when it is requested.
    """

    def __init__(self, *, has_frames: bool) -> None:
        self.has_frames = has_frames
        self.station = RecordingStation()
        self.reported: list[tuple[str, ...]] = []
        self.batches: list[tuple[str, ...]] = []
        self.bolts: list[str] = []
        """By the number of a bolt, from 1 on, the command for which it was tightened."""
        self.inbox: dict[int, ReportedResult] = {}
        self.seen: set[int] = set()
        self.sent: list[int] = []
        """The bolts that were sent by themselves, the last one last: each once, but for that one."""
        self.meanwhile: list[tuple[int, bool]] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.now, self.number = 0.0, 1
        self._start()

    @property
    def command(self) -> str:
        return f"J{self.number}"

    def _start(self) -> None:
        self.ledger = ResultLedger()
        self.ledger.connect()
        self.settlement = ResultSettlement(self.ledger, LateResults("wrench", "station-1", self.station), self)
        self.taking = asyncio.Lock()
        self.seen = set()
        if self.command not in self.station.stopped_meanwhile:
            self.ledger.claim(ResultClaim(self.command, classification="batch"), self.command)

    def result(self, number: int, *, is_live: bool) -> ReportedResult:
        mark, self.now = self.bolts[number - 1], self.now + 1
        is_last = self.bolts[:number].count(mark) >= SIZE
        return ReportedResult(
            payload=number,
            result_id=str(number),
            sequence=number,
            identifier=mark,
            command_id=self.ledger.marks.get(mark),
            completes=SINGLE | {"batch"} if is_last else SINGLE,
            frame=f"frame {number}" if is_live and self.has_frames else "",
            received=self.now,
        )

    async def send(self, number: int, *, is_live: bool) -> None:
        """Send a result; one that was lost may come after it was requested."""
        if is_live and number in self.sent:
            return
        if is_live:
            self.sent.append(number)
        await self.take(self.result(number, is_live=is_live))

    async def take(self, report: ReportedResult, *, is_earlier: bool = False) -> None:
        """Take a result as a collector does: one that waits for its command is in the inbox first.

        An earlier one, from the inbox, is not acknowledged on this connection before the controller sends it again.
        """
        self.seen.add(report.payload)
        if report.frame and self.ledger.waits(report):
            self.inbox[report.payload] = report
        async with self.taking:
            verdict = self.ledger.judge(report)
            if verdict.standing is not Standing.REPEATED:
                await self.settlement.take(report, verdict)
            elif verdict.is_owed:
                self.inbox.pop(report.payload, None)
            if report.frame and not is_earlier:
                self.ledger.acknowledge(report, report.received)

    async def happen(self, what: str, choice: int) -> None:
        is_over = self.command in self.station.stopped_meanwhile
        chosen = choice % len(self.bolts) + 1 if self.bolts else 0
        match what:
            case "tighten" | "lose" if self.bolts.count(self.command) < SIZE:
                self.bolts.append(self.command)
                if what == "tighten":
                    await self.send(len(self.bolts), is_live=True)
            case "send again" if self.sent and self.sent[-1] in self.seen:
                await self._kill()
                self.ledger.connect()
                await self._replay()
                await self.take(self.result(self.sent[-1], is_live=True))
            case "request" if chosen and self._may_come(chosen):
                await self.send(chosen, is_live=False)
            case "meanwhile" if chosen:
                self.meanwhile.append((chosen, bool(choice % 2)))
            case "answer" if not is_over and self.ledger.answer(self.command):
                await self._answer()
            case "expire":
                self.station.stopped_meanwhile.add(self.command)
            case "stop":
                await self._end()
            case "restart":
                await self._kill()
                self._start()
                await self._replay()
            case _:
                pass

    async def _kill(self) -> None:
        """End what the gateway does on its connection: nothing that it received there reaches the next one."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.tasks = []

    async def _replay(self) -> None:
        """Take what is in the inbox, as at the beginning of each connection."""
        for reported_result in list(self.inbox.values()):
            await self.take(self.result(reported_result.payload, is_live=True), is_earlier=True)

    def _may_come(self, number: int) -> bool:
        """Return whether a bolt may be requested: after a restart, only one that is not durable."""
        return number in self.seen or str(number) not in Counter(text for report in self.reported for text in report)

    async def _answer(self) -> None:
        """Answer with the whole batch, or leave it open: its outcome is unknown."""
        parts = self.ledger.parts(self.command)
        self.station.stopped_meanwhile.add(self.command)
        if len(parts) >= SIZE:
            self._report(parts, is_batch=True)
            await self.settlement.settle(self.command)
        await self._end()

    async def _end(self) -> None:
        self.station.stopped_meanwhile.add(self.command)
        await self.settlement.settle_left()
        self.number += 1
        self.ledger.claim(ResultClaim(self.command, classification="batch"), self.command)

    async def end(self) -> None:
        """End what is open, and request what did not come."""
        await self._end()
        await asyncio.gather(*self.tasks)
        for number in range(1, len(self.bolts) + 1):
            if self._may_come(number):
                await self.take(self.result(number, is_live=False))
        await self.settlement.settle_left()

    def _report(self, reports: Sequence[ReportedResult], *, is_batch: bool = False) -> None:
        named = tuple(report.result_id for report in reports)
        self.reported.append(named)
        self.batches += [named] if is_batch else []
        for number, is_live in self.meanwhile:
            if self._may_come(number):
                self.tasks.append(asyncio.create_task(self.send(number, is_live=is_live)))
        self.meanwhile = []

    async def report_own(self, report: ReportedResult, verdict: Verdict) -> None:
        self._report([report])
        await asyncio.sleep(0)

    async def report_answer(self, command_id: str, answer: ReportedResult) -> Sequence[ReportedResult]:
        parts = self.ledger.parts(command_id)
        if len(parts) < SIZE:
            return ()
        self._report(parts, is_batch=True)
        await asyncio.sleep(0)
        return parts

    async def keep(self, report: ReportedResult, command_id: str) -> None:
        self._report([report])
        await asyncio.sleep(0)

    async def is_stored(self, report: ReportedResult, command_id: str) -> bool:
        return False

    def note_answered(self, command_id: str, reports: Sequence[ReportedResult]) -> None:
        """Remember nothing."""

    async def acknowledge(self, reports: Sequence[ReportedResult]) -> None:
        for report in reports:
            self.inbox.pop(report.payload, None)
        await asyncio.sleep(0)

    async def acknowledge_late(self, report: ReportedResult) -> None:
        await self.acknowledge([report])


async def carry_out(happenings: Sequence[tuple[str, int]], *, has_frames: bool) -> Workshop:
    workshop = Workshop(has_frames=has_frames)
    for what, choice in happenings:
        await workshop.happen(what, choice)
    await workshop.end()
    return workshop


@settings(max_examples=1000)
@example(happenings=[("lose", 0), ("meanwhile", 0), ("stop", 0), ("request", 0), ("restart", 0)], has_frames=False)
@example(happenings=[("lose", 0), ("meanwhile", 1), ("expire", 0), ("tighten", 0), ("send again", 0)], has_frames=True)
@given(st.lists(st.tuples(st.sampled_from(HAPPENINGS), st.integers(0, 9)), max_size=20), st.booleans())
def test_each_bolt_is_reported_once_and_a_batch_only_whole(
    happenings: list[tuple[str, int]],
    has_frames: bool,  # noqa: FBT001 - by position
) -> None:
    workshop = asyncio.run(carry_out(happenings, has_frames=has_frames))
    counted = Counter(text for report in workshop.reported for text in report)
    assert counted == Counter(str(number) for number in range(1, len(workshop.bolts) + 1))
    assert (workshop.ledger.unsettled(), workshop.inbox) == ((), {})
    for batch in workshop.batches:
        (command,) = {workshop.bolts[int(text) - 1] for text in batch}
        assert len(batch) == workshop.bolts.count(command) == SIZE
