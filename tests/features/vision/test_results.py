"""A result of a camera is kept for the command that waits for it, or reported as late."""

from typing import Any, cast

import pytest
from asyncua import ua
from structlog.testing import capture_logs

from edge.equipment.unclaimed import LateResults, OwnEvents
from edge.features.vision.equipment import NAMESPACE_URI
from edge.features.vision.results import VisionResults
from edge.features.vision.simulated.camera import VisionCamera
from edge.links.opcua import ClientSession
from tests.conftest import WaitUntil
from tests.equipment.contract import NEXT, WORK
from tests.equipment.inspection import equipped
from tests.equipment.recording_station import RecordingStation

_RESULT_READY = 1024
CAMERA = cast("ClientSession", None)
"""The camera of tests that do not call it."""


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
    assert list(collected.kept) == [WORK.command_id]
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
    assert [(late_result.key, late_result.command_id) for late_result in station.late_results] == [("R1", None)]


async def test_result_of_an_aborted_job_is_only_logged() -> None:
    station = RecordingStation()
    with capture_logs() as logs:
        await results(station, {}).handle(result(state=3))
    assert station.late_results == []
    assert [entry["event"] for entry in logs] == ["incomplete result discarded"]


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("parts", [1, 25])
async def test_result_behind_partial_results_is_found(camera: VisionCamera, wait_until: WaitUntil, parts: int) -> None:
    """One result was asked for: a partial one that is listed first hid the complete one, and the job was repeated."""
    async with equipped(camera, wait_until) as bench:
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.device.begun)
        bench.station.unanswered = [WORK]
        async with bench.device.cut_off():
            for _ in range(parts):
                await camera.report_part()
            await bench.device.finish()
        await wait_until(lambda: bench.station.answers)
    assert bench.station.answers[0].data["result_state"] == "Completed"
    assert len(camera.begun) == 1


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("has_list", [True, False])
async def test_picture_over_the_size_limit_does_not_block_the_camera(
    camera: VisionCamera, wait_until: WaitUntil, *, has_list: bool
) -> None:
    async with equipped(camera, wait_until, max_message_bytes=100_000) as bench:
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.device.begun)
        camera.content, content = (bytes(200_000),), camera.content
        camera.lists_results = has_list
        await bench.device.finish()
        camera.content = content
        await wait_until(lambda: bench.station.unknown)
        await bench.equipment.send(NEXT)
        await wait_until(lambda: len(camera.begun) == 2)
        await bench.device.finish()
        await wait_until(lambda: bench.station.answers)
        camera.lists_results = True
    assert bench.equipment.connection_count == 1
    assert (bench.station.answers[0].command_id, bench.station.answers[0].error) == (NEXT.command_id, None)
    assert "max_message_bytes" in str(bench.station.unknown[0].reason)
    assert {refused.kind for refused in bench.station.refused} == {"too_large"}


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
async def test_result_of_a_camera_that_cannot_be_read_is_unknown(camera: VisionCamera, wait_until: WaitUntil) -> None:
    async with equipped(camera, wait_until) as bench:
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.device.begun)
        camera.lists_results = False
        index = await camera.device.server.get_namespace_index(NAMESPACE_URI)
        await camera.device.send_event(ua.NodeId(_RESULT_READY, index), {"JobId": ua.Variant("garbage")})
        await wait_until(lambda: bench.station.refused)
        assert bench.station.unknown == []
        # Its job ends without another result.
        await camera.forget()
        await wait_until(lambda: bench.station.unknown)
        camera.lists_results = True
    assert "cannot be read" in str(bench.station.unknown[0].reason)
    assert {refused.kind for refused in bench.station.refused} == {"unreadable"}
