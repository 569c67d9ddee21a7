"""A result of a camera is kept for the command that waits for it, or reported as late."""

from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from edge.links.opcua import ClientSession
from edge.southbound.late_result import LateResults
from edge.southbound.own_events import OwnEvents
from edge.southbound.vision_results import VisionResults
from tests.southbound.contract import WORK
from tests.southbound.recording_station import RecordingStation

CAMERA = cast("ClientSession", None)
"""No test in this module calls the camera."""


def result(meas_id: str | None = None, state: int = 1) -> dict[str, Any]:
    """Return the result of the job V1."""
    named = {"MeasId": {"Id": meas_id}} if meas_id else {}
    return {"JobId": {"Id": "V1"}, "ResultId": {"Id": "R1"}, "ResultState": state, **named}


def results(station: RecordingStation, jobs: dict[str, str]) -> VisionResults:
    events = OwnEvents("camera", {}, station, "station-1")
    return VisionResults(CAMERA, {}, jobs, LateResults("camera", "station-1", station), events)


@pytest.mark.parametrize(("jobs", "meas_id"), [({WORK.command_id: "V1"}, "by hand"), ({}, WORK.command_id)])
async def test_result_of_a_waiting_command_is_kept(jobs: dict[str, str], meas_id: str) -> None:
    station = RecordingStation()
    collected = results(station, jobs)
    await collected.handle(result(meas_id))
    assert list(collected.kept) == ["V1"]
    assert (station.answers, station.late_results) == ([], [])


async def test_result_of_a_command_no_longer_waiting_is_reported() -> None:
    station = RecordingStation()
    station.stopped_meanwhile.add(WORK.command_id)
    collected = results(station, {})
    await collected.handle(result(WORK.command_id))
    assert collected.kept == {}
    assert list(station.outcomes()) == [WORK.command_id]


async def test_result_without_a_command_is_unsolicited() -> None:
    station = RecordingStation()
    await results(station, {}).handle(result("by hand"))
    assert [(each.key, each.command_id) for each in station.late_results] == [("R1", None)]


async def test_result_of_an_aborted_job_is_only_logged() -> None:
    station = RecordingStation()
    with capture_logs() as logs:
        await results(station, {}).handle(result(state=3))
    assert station.late_results == []
    assert [each["event"] for each in logs] == ["incomplete result discarded"]
