"""Joinings that no command waits for are events or late results, each under a key of its own."""

from typing import Any

import pytest

from edge.equipment.result_ledger import ReportedResult, ResultLedger, Standing, Verdict
from edge.equipment.unclaimed import LateResults
from edge.features.joining.late import LateJoinings
from tests.equipment.contract import WORK
from tests.equipment.recording_station import RecordingStation

INTERVENTION = 6
OWN = Verdict(Standing.UNSOLICITED)


def report(sequence: int = 0, **meta: Any) -> ReportedResult:
    result = {"ResultMetaData": {"ResultId": "R1", "SequenceNumber": sequence} | meta, "ResultContent": None}
    return ReportedResult(payload=result, result_id="R1", sequence=sequence)


class Reports:
    """Reports of joinings; `is_used`: a job uses each own joining as an event."""

    def __init__(self, *, is_used: bool = False) -> None:
        self.station, self.ledger = RecordingStation(), ResultLedger()
        self.offered: list[str] = []
        self._is_used = is_used
        self.joinings = LateJoinings(
            LateResults("wrench", "station-1", self.station), self.ledger, self._offer, self._add
        )

    async def _offer(self, _: object, occurrence: str) -> bool:
        self.offered.append(occurrence)
        return self._is_used

    async def _add(self, command_id: str, _: object, data: dict[str, Any]) -> None:
        data["file"] = command_id


@pytest.mark.parametrize("used", [True, False])
async def test_own_joining_not_used_as_an_event_is_late(*, used: bool) -> None:
    reports = Reports(is_used=used)
    await reports.joinings.report_own(report(), OWN)
    assert (reports.offered, len(reports.station.late_results)) == ([""], int(not used))


async def test_joining_with_the_id_of_a_durable_one_has_another_key() -> None:
    reports = Reports()
    for sequence in (1, 2):
        await reports.joinings.report_own(report(sequence), OWN)
        reports.ledger.settle([report(sequence)])
    assert [result.key for result in reports.station.late_results] == ["R1", "R1 2/None/None"]


async def test_second_joining_of_a_command_is_kept_with_its_file() -> None:
    reports = Reports()
    await reports.joinings.keep(report(), WORK.command_id)
    (late,) = reports.station.late_results
    assert (late.command_id, late.data["file"]) == (WORK.command_id, WORK.command_id)


async def test_aborted_joining_is_not_reported() -> None:
    reports = Reports()
    await reports.joinings.report_own(report(Classification=INTERVENTION), OWN)
    await reports.joinings.keep(report(Classification=INTERVENTION), WORK.command_id)
    assert (reports.offered, reports.station.late_results) == ([], [])


async def test_joining_that_does_not_count_is_late_with_its_command_and_reason() -> None:
    reports = Reports()
    verdict = Verdict(Standing.UNSOLICITED, reason="its program is not the commanded one", candidate=WORK.command_id)
    await reports.joinings.report_own(report(), verdict)
    (late,) = reports.station.late_results
    assert (late.command_id, late.reason) == (WORK.command_id, "its program is not the commanded one")
    assert reports.station.answers == []
