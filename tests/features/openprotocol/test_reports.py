"""Results and commands of Open Protocol become reports and claims of the ledger."""

from datetime import datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from edge.equipment.result_ledger import ReportedResult
from edge.features.openprotocol.conversion import result_data
from edge.features.openprotocol.protocol.mids import Mid
from edge.features.openprotocol.reports import (
    ResultMemory,
    batch_of,
    claim_of,
    decode_memory,
    mark_of,
    remembered,
    reported,
)
from edge.station.equipment import Command
from tests.equipment.contract import WORK

NOON = datetime(2026, 11, 26, 12, 0, 0)  # noqa: DTZ001 - local, without a zone
RESULT = {"result": 7, "time": NOON, "torque": 85.2, "angle": 42, "identifier": "M", "parameter_set": 3, "job": 0}


def command(**parameters: Any) -> Command:
    return replace(WORK, parameters=parameters)


def report(correlation: str = "mark", origin: tuple[int, int] = (0, 0), /, **fields: Any) -> ReportedResult:
    return reported({**RESULT, **fields}, {"M": WORK.command_id}, correlation=correlation, origin=origin)


def test_result_is_reported_with_its_identity_and_command() -> None:
    reported_result = report()
    assert (reported_result.identity, reported_result.command_id) == (("7", 7, NOON, (85.2, 42)), WORK.command_id)
    assert reported_result.program == {"parameter_set": {"3"}, "identifier": {"M"}}
    assert (reported_result.frame, report("next").command_id, report("next").identifier) == ("", None, "")


def test_equal_frames_have_one_digest_whenever_they_were_received() -> None:
    live = report(mid=61, revision=6, received=1.0)
    assert live.frame == report(mid=61, revision=6, received=2.0).frame != ""
    assert live.frame != report(mid=61, revision=6, received=1.0, torque=85.3).frame
    assert live.frame != report(mid=61, revision=6, received=1.0, spindle=2).frame


@pytest.mark.parametrize(
    ("header", "foreign"),
    [
        ({}, False),
        ({"station": 1, "spindle": 1}, False),
        ({"station": 2}, True),
        ({"spindle": 2}, True),
        ({"mid": Mid.SPINDLES_RESULT, "spindle": 2}, False),
        ({"mid": Mid.SPINDLES_RESULT, "station": 2}, True),
    ],
)
def test_result_of_another_station_or_spindle_is_foreign(header: dict[str, Any], *, foreign: bool) -> None:
    assert report(**header).is_foreign is foreign


@pytest.mark.parametrize(
    ("header", "foreign"),
    [
        ({"station": 2, "spindle": 3}, False),
        ({"station": 2, "spindle": 1}, True),
        ({"station": 1, "spindle": 3}, True),
        ({}, True),
        ({"mid": Mid.SPINDLES_RESULT, "station": 2}, False),
    ],
)
def test_result_of_the_station_in_the_greeting_is_ours(header: dict[str, Any], *, foreign: bool) -> None:
    assert report("mark", (2, 3), **header).is_foreign is foreign


def test_claim_names_the_program_the_identifier_and_the_classification() -> None:
    claim = claim_of(command(parameter_set="3", classification="batch"), "VIN")
    assert claim.program == {"parameter_set": {"3"}, "identifier": {"VIN"}}
    assert claim.classification == "batch"
    assert claim_of(command(job=2)).program == {"job": {"2"}}
    assert (mark_of(WORK, "mark"), mark_of(WORK, "next")) == (WORK.mark, "")


def test_result_that_completes_a_batch_answers_a_batch() -> None:
    assert report(batch_status=1).completes == report(batch_size=4, batch_counter=4).completes == {"single", "batch"}
    assert report(batch_size=4, batch_counter=3, batch_status=0).completes == {"single"}


@pytest.mark.parametrize(
    ("bolts", "wanted"),
    [
        ([(3, 3), (2, 2), (1, 1)], [1, 2, 3]),
        ([(5, 5), (4, 4), (3, 3), (2, 2), (1, 1)], [1, 2, 3]),
        ([(4, 1), (3, 3), (2, 2), (1, 1)], [1, 2, 3]),
        ([(1, 1), (2, 1), (3, 2), (4, 3), (5, 3)], [1, 2, 3, 4]),
        ([(4, 4), (3, 3)], [3, 4]),
        ([(8, 1), (9, 2), (1, 3)], [1, 8, 9]),
    ],
    ids=["whole", "further bolts", "next batch", "one bad bolt", "missing bolts", "numbers begin again"],
)
def test_earliest_whole_batch_is_the_answer(bolts: list[tuple[int, int]], wanted: list[int]) -> None:
    reports = [report(result=number, batch_size=3, batch_counter=count) for number, count in bolts]
    assert [part.sequence for part in batch_of(reports)] == wanted


@pytest.mark.parametrize("received", [{"received": 1.0}, {}], ids=["live", "requested"])
def test_remembered_result_has_the_identity_of_the_result(received: dict[str, float]) -> None:
    reported_result = report(mid=61, revision=6, **received)
    remembered_result = remembered(reported_result, "J1", "batch")
    assert (remembered_result.report.identity, remembered_result.report.frame) == (
        reported_result.identity,
        reported_result.frame,
    )
    assert remembered_result.key == (reported_result.frame or reported_result.identity)


def test_memory_that_is_damaged_is_empty() -> None:
    assert decode_memory("") == decode_memory("{damaged") == ResultMemory()


@given(st.datetimes() | st.none() | st.text(max_size=3))
def test_any_date_of_a_result_is_taken(time: Any) -> None:
    """The end of the calendar is a valid instant, also where the time zone leads beyond it."""
    reported_result = report(time=time)
    data = result_data({**RESULT, "time": time})
    assert (reported_result.instant is None) == (data["created_at"] is None)
    memory = ResultMemory(7, remembered(reported_result))
    assert decode_memory(msgspec.json.encode(memory).decode()) == memory
