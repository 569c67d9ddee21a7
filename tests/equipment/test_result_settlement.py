"""Results are reported before they are acknowledged, and each once, whatever the kind of the controller."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from edge.equipment.result_ledger import ReportedResult, ResultClaim, ResultLedger, Verdict
from edge.equipment.result_settlement import ResultSettlement
from edge.equipment.unclaimed import LateResults
from edge.foundation.errors import Unavailable
from tests.equipment.recording_station import RecordingStation

SINGLE, WHOLE = frozenset({"single"}), frozenset({"single", "batch"})


class Bolts:
    """A controller that lists what is done with its results; `failures` are raised by the next reports.

    A batch of less than `size` results is not an answer. `meanwhile` runs while the first one is reported.
    """

    def __init__(self, ledger: ResultLedger) -> None:
        self.ledger = ledger
        self.done: list[str] = []
        self.failures: list[Exception] = []
        self.stored: set[str] = set()
        self.size = 1
        self.cuts = 0
        self.meanwhile: Callable[[], object] | None = None

    async def report_own(self, report: ReportedResult, verdict: Verdict) -> None:
        self._do(f"own {report.result_id}")

    async def report_answer(self, command_id: str, answer: ReportedResult) -> Sequence[ReportedResult]:
        parts = self.ledger.parts(command_id)
        if len(parts) < self.size:
            return ()
        self._do(f"answer {' '.join(part.result_id for part in parts)}")
        return parts

    async def keep(self, report: ReportedResult, command_id: str) -> None:
        await asyncio.sleep(0)
        self._do(f"late {report.result_id}")

    async def is_stored(self, report: ReportedResult, command_id: str) -> bool:
        return report.result_id in self.stored

    def note_answered(self, command_id: str, reports: Sequence[ReportedResult]) -> None:
        """Remember nothing."""

    async def acknowledge(self, reports: Sequence[ReportedResult]) -> None:
        self.done += [f"acknowledged {report.frame or report.result_id}" for report in reports]

    async def acknowledge_late(self, report: ReportedResult) -> None:
        if self.cuts:
            self.cuts -= 1
            raise Unavailable("no connection")
        await self.acknowledge([report])

    def _do(self, what: str) -> None:
        if self.failures:
            raise self.failures.pop()
        self.done.append(what)
        if meanwhile := self.meanwhile:
            self.meanwhile = None
            meanwhile()


class Bench:
    """A settlement whose only command J1 expects a batch; it waits until `give_up`."""

    def __init__(self) -> None:
        self.ledger, self.station = ResultLedger(), RecordingStation()
        self.ledger.claim(ResultClaim("J1", classification="batch"))
        self.bolts = Bolts(self.ledger)
        self.settlement = ResultSettlement(self.ledger, LateResults("wrench", "station-1", self.station), self.bolts)

    def give_up(self) -> None:
        self.station.stopped_meanwhile.add("J1")

    async def take(self, number: int, completes: frozenset[str] = SINGLE) -> None:
        report = ReportedResult({}, str(number), number, command_id="J1", completes=completes)
        await self.settlement.take(report, self.ledger.judge(report))


def reports_of(bench: Bench) -> list[str]:
    return [text for text in bench.bolts.done if "acknowledged" not in text]


async def test_parts_of_a_waiting_command_are_left_alone() -> None:
    bench = Bench()
    await bench.take(1)
    await bench.settlement.settle_left()
    assert (bench.bolts.done, len(bench.ledger.unsettled())) == ([], 1)


@pytest.mark.parametrize(
    ("completes", "done"),
    [
        (SINGLE, ["late 1", "acknowledged 1", "late 2", "acknowledged 2"]),
        (WHOLE, ["answer 1 2", "acknowledged 1", "acknowledged 2"]),
    ],
)
async def test_kept_results_of_a_command_given_up_are_settled_once(completes: frozenset[str], done: list[str]) -> None:
    bench = Bench()
    await bench.take(1)
    await bench.take(2, completes)
    bench.give_up()
    await bench.settlement.settle_left()
    await bench.settlement.settle_left()
    assert (bench.bolts.done, bench.ledger.unsettled()) == (done, ())


async def test_stored_part_is_acknowledged_without_a_report() -> None:
    bench = Bench()
    await bench.take(1)
    bench.give_up()
    bench.bolts.stored.add("1")
    await bench.settlement.settle_left()
    assert bench.bolts.done == ["acknowledged 1"]


@pytest.mark.parametrize(("completes", "report"), [(SINGLE, "late 1"), (WHOLE, "answer 1")])
async def test_only_what_completes_a_command_given_up_is_its_answer(completes: frozenset[str], report: str) -> None:
    bench = Bench()
    bench.give_up()
    await bench.take(1, completes)
    assert bench.bolts.done == [report, "acknowledged 1"]


async def test_report_that_fails_is_repeated_before_the_acknowledgement() -> None:
    bench = Bench()
    await bench.take(1)
    bench.give_up()
    bench.bolts.failures.append(Unavailable("no store"))
    with pytest.raises(Unavailable):
        await bench.settlement.settle_left()
    assert bench.bolts.done == []
    await bench.settlement.settle_left()
    assert bench.bolts.done == ["late 1", "acknowledged 1"]


async def test_second_result_of_a_command_is_late_after_its_answer() -> None:
    bench = Bench()
    await bench.take(1, WHOLE)
    await bench.take(2, WHOLE)
    await bench.settlement.settle("J1")
    assert bench.bolts.done == ["late 2", "acknowledged 2", "acknowledged 1"]


@pytest.mark.parametrize(
    ("size", "done"),
    [
        (3, ["answer 1 2 3"]),
        (4, ["late 1", "late 2", "late 3"]),
    ],
)
async def test_last_bolt_during_a_reset_loses_no_bolt_of_its_batch(size: int, done: list[str]) -> None:
    """The first bolts are kept while the tool is being disabled; nothing waits for the batch any more."""
    bench = Bench()
    bench.bolts.size = size
    await bench.take(1)
    await bench.take(2)
    bench.give_up()
    await bench.take(3, WHOLE)
    await bench.settlement.settle_left()
    assert reports_of(bench) == done
    assert len([text for text in bench.bolts.done if "acknowledged" in text]) == 3
    assert bench.ledger.unsettled() == ()


async def test_bolt_after_the_last_of_a_batch_given_up_is_late_alone() -> None:
    bench = Bench()
    await bench.take(1)
    bench.give_up()
    await bench.take(2, WHOLE)
    await bench.take(3)
    await bench.settlement.settle_left()
    assert reports_of(bench) == ["answer 1 2", "late 3"]


async def test_bolt_requested_and_live_while_it_is_reported_is_reported_once() -> None:
    bench = Bench()
    await bench.take(1)
    bench.give_up()
    live = ReportedResult({}, "1", 1, command_id="J1", frame="frame of 1")
    bench.bolts.meanwhile = lambda: bench.ledger.judge(live)
    await bench.settlement.settle_left()
    await bench.settlement.settle_left()
    assert (bench.bolts.done, bench.ledger.unsettled()) == (["late 1", "acknowledged frame of 1"], ())


async def test_answer_reported_before_a_cut_is_reported_no_more() -> None:
    """The connection is lost while its results are acknowledged: the rest of them is not a further answer."""
    bench = Bench()
    await bench.take(1)
    await bench.take(2, WHOLE)
    bench.give_up()
    bench.bolts.cuts = 1
    with pytest.raises(Unavailable):
        await bench.settlement.settle_left()
    await bench.settlement.settle_left()
    assert (bench.bolts.done, bench.ledger.unsettled()) == (["answer 1 2"], ())


async def test_stop_of_an_earlier_connection_reports_no_bolt_again() -> None:
    bench = Bench()
    await bench.take(1)
    bench.give_up()
    later = ResultSettlement(bench.ledger, LateResults("wrench", "station-1", bench.station), bench.bolts)
    await asyncio.gather(bench.settlement.settle_left(), later.settle_left())
    assert reports_of(bench) == ["late 1"]
