"""A Machine Vision camera fulfils the equipment contract and returns its results after every kind of failure."""

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace

from edge.equipment.device import DeviceOutcomeUnknownError
from edge.equipment.repetition import StartPolicy
from edge.equipment.unclaimed import LateResults, OwnEvents
from edge.features.vision.equipment import Camera, open_vision
from edge.features.vision.results import VisionResults
from edge.features.vision.settings import VisionSettings
from edge.features.vision.simulated.camera import VisionCamera, VisionFault
from edge.features.vision.state import StateReader
from edge.foundation.errors import Refused, Unavailable
from edge.links.opcua import ClientSession, Node
from edge.station.equipment import EquipmentAnswer, Repetition
from tests.conftest import WaitUntil
from tests.equipment.contract import NEXT, SCOPES, TYPE_ID, WORK, Contract, Opener
from tests.equipment.inspection import ByHand, equipped
from tests.equipment.recording_station import RecordingStation
from tests.virtual_time import run_virtual

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]


@pytest.fixture
def opener(camera: VisionCamera, wait_until: WaitUntil) -> Opener:
    return partial(equipped, camera, wait_until)


class TestVisionContract(Contract):
    failure = "the camera went into the state Error"


class TestVisionOnceContract(TestVisionContract):
    repetition = Repetition.ONCE

    @pytest.fixture
    def opener(self, camera: VisionCamera, wait_until: WaitUntil) -> Opener:
        return partial(equipped, camera, wait_until, repetition="once")


async def test_late_result_of_a_stopped_job_is_reported(opener: Opener, wait_until: WaitUntil) -> None:
    async with opener() as bench:
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.device.begun)
        bench.station.stopped_meanwhile.add(WORK.command_id)
        await bench.device.finish()
        await wait_until(lambda: bench.station.answers)
    assert bench.station.outcomes()[WORK.command_id]["meas_id"] == WORK.command_id


async def test_result_produced_without_a_connection_is_reported_at_the_stop(
    opener: Opener, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.device.begun)
        async with bench.device.cut_off():
            await bench.device.finish()
        async with asyncio.timeout(60):
            while not bench.station.stops:
                # The station repeats a stop until the equipment accepts it.
                with suppress(Unavailable):
                    await bench.equipment.stop(WORK)
                await asyncio.sleep(0.05)
    assert bench.station.outcomes()[WORK.command_id]["result_state"] == "Completed"
    assert bench.station.stops == [(WORK.command_id, None)]


async def test_unsolicited_image_is_kept_as_late_result(
    opener: Opener, camera: VisionCamera, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await camera.trigger()
        await wait_until(lambda: bench.station.late_results)
    (late,) = bench.station.late_results
    assert (late.command_id, late.data["meas_id"]) == (None, "by hand")


async def test_unrepeatable_image_is_unknown_after_a_power_cut(
    opener: Opener, camera: VisionCamera, wait_until: WaitUntil
) -> None:
    async with opener():
        pass
    settings = VisionSettings(
        kind="vision", type_ids=(TYPE_ID,), url=camera.device.url, security="none", repetition="once"
    )
    station = RecordingStation()
    async with open_vision("camera", settings, station, SCOPES) as equipment:
        await wait_until(lambda: equipment.connected)
        await equipment.send(WORK)
        await wait_until(lambda: camera.begun)
        station.unanswered = [replace(WORK, begun=True)]
        async with ByHand(camera).away():
            pass
        await wait_until(lambda: station.unknown)
    assert len(camera.begun) == 1


async def test_a_result_is_plain_json(opener: Opener, wait_until: WaitUntil) -> None:
    async with opener() as bench:
        await bench.equipment.send(replace(WORK, parameters={"recipe_id": "P1", "part_id": "SN-7"}))
        await wait_until(lambda: bench.device.begun)
        await bench.device.finish()
        await wait_until(lambda: bench.station.answers)
    data = bench.station.answers[0].data
    assert {name: data[name] for name in ("result_state", "part_id", "recipe_id", "meas_id", "content")} == {
        "result_state": "Completed",
        "part_id": "SN-7",
        "recipe_id": "P1",
        "meas_id": WORK.command_id,
        "content": [True, 3],
    }
    assert msgspec.json.encode(data)


@pytest.mark.parametrize("name", ["part_id", "meas_id"])
async def test_identifier_that_is_not_a_text_starts_no_job(opener: Opener, wait_until: WaitUntil, name: str) -> None:
    async with opener() as bench:
        await bench.equipment.send(replace(WORK, parameters={"recipe_id": "P1", name: 7}))
        await wait_until(lambda: bench.station.answers)
        assert bench.device.begun == []
    assert bench.station.answers[0].error == f"the parameter {name} has to be a text, not 7"


async def test_a_camera_in_error_is_reset_first(opener: Opener, camera: VisionCamera, wait_until: WaitUntil) -> None:
    async with opener() as bench:
        await camera.break_down()
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.device.begun)
        await bench.device.finish()
        await wait_until(lambda: bench.station.answers)
    assert bench.station.answers[0].error is None


async def test_job_waits_until_its_own_recipe_is_prepared(
    opener: Opener, camera: VisionCamera, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.device.begun)
        await bench.device.finish()
        await wait_until(lambda: bench.station.answers)
        camera.fault = VisionFault.SLOW_RECIPE
        await bench.equipment.send(replace(NEXT, parameters={"recipe_id": "P2"}))
        await wait_until(lambda: len(bench.device.begun) == 2)
        await bench.device.finish()
        await wait_until(lambda: NEXT.command_id in bench.station.outcomes())
    assert camera.jobs == [(WORK.command_id, "P1"), (NEXT.command_id, "P2")]


async def test_states_are_read_by_their_ids_in_any_language(
    opener: Opener, camera: VisionCamera, wait_until: WaitUntil
) -> None:
    camera.state_texts = {"Operational": "Betriebsbereit", "Ready": "Bereit", "Error": "Fehler"}
    async with opener() as bench:
        camera.state_texts = {"Operational": "Betriebsbereit", "Ready": "Bereit", "Error": "Fehler"}
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.device.begun)
        await bench.device.finish()
        await wait_until(lambda: bench.station.answers)
    assert bench.station.answers[0].error is None


async def test_stale_mode_of_a_camera_in_error_blocks_no_job(
    opener: Opener, camera: VisionCamera, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.device.begun)
        # The mode of the machine keeps the value SingleExecution.
        await camera.break_down()
        await wait_until(lambda: bench.station.answers)
        await bench.equipment.send(NEXT)
        await wait_until(lambda: len(bench.device.begun) == 2)
        await bench.device.finish()
        await wait_until(lambda: NEXT.command_id in bench.station.outcomes())
    assert bench.station.outcomes()[NEXT.command_id]["result_state"] == "Completed"


async def test_job_refused_by_the_camera_fails(opener: Opener, camera: VisionCamera, wait_until: WaitUntil) -> None:
    async with opener() as bench:
        camera.fault = VisionFault.REFUSED
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.station.answers)
    assert bench.station.answers == [EquipmentAnswer(WORK.command_id, error="StartSingleJob: the camera says error 1")]


async def test_result_with_state_failed_fails_its_command(
    opener: Opener, camera: VisionCamera, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.device.begun)
        await camera.end_job(4)
        await wait_until(lambda: bench.station.answers)
    assert bench.station.answers[0].error == "the result has the state Failed"


async def test_restarted_gateway_finds_the_result_of_its_job(
    opener: Opener, camera: VisionCamera, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.device.begun)
    await camera.end_job()
    settings = VisionSettings(kind="vision", type_ids=(TYPE_ID,), url=camera.device.url, security="none")
    station = RecordingStation()
    station.unanswered = [WORK]
    async with open_vision("camera", settings, station, SCOPES):
        await wait_until(lambda: station.answers)
    assert station.answers[0].data["meas_id"] == WORK.command_id
    assert len(camera.begun) == 1


async def test_camera_job_of_a_killed_gateway_is_executed_once(
    opener: Opener, camera: VisionCamera, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.device.begun)
    settings = VisionSettings(kind="vision", type_ids=(TYPE_ID,), url=camera.device.url, security="none")
    station = RecordingStation()
    station.unanswered = [WORK]
    async with open_vision("camera", settings, station, SCOPES) as equipment:
        await wait_until(lambda: equipment.connected)
        await camera.end_job()
        await wait_until(lambda: station.answers or len(camera.begun) > 1)
    assert [answer.error for answer in station.answers] == [None]
    assert len(camera.begun) == 1


class Scripted:
    """A camera that accepts every job. It is Operational at once, but does not report it when it is `mute`."""

    url = "opc.tcp://camera"

    def __init__(self, *, mute: bool = False) -> None:
        self.mute = mute
        self.jobs = 0
        self.station = RecordingStation()

    async def children(self, _: Node) -> dict[str, Node]:
        return {"CurrentState": Node("i=1", "/CurrentState")}

    async def read(self, variable: Node) -> str:
        return "Ready" if "Mode" in variable.path else "Operational"

    async def call(self, _: Node, method: str, *__: object) -> list[Any]:
        assert method in {"PrepareRecipe", "StartSingleJob"}
        self.jobs += method == "StartSingleJob"
        return [{"Id": f"job-{self.jobs}"}, 0] if method == "StartSingleJob" else [{"Id": "1"}, True, 0]

    async def is_a(self, *_: object) -> bool:
        return True

    async def result(self, camera: Camera) -> None:
        """Report the last job as completed."""
        empty = dict.fromkeys(("MeasId", "PartId", "ExternalRecipeId", "IsSimulated", "CreationTime"))
        done = {"IsPartial": False, "ResultState": 1, "ResultId": {"Id": "r"}, "ResultContent": []}
        await camera.handle_event({"EventType": "i=2", "JobId": {"Id": f"job-{self.jobs}"}, **empty, **done})

    async def opened(self, ready_seconds: float = 5.0) -> Camera:
        state = Node("i=3", "/VisionStateMachine")
        parts = {"VisionStateMachine": state, "RecipeManagement": state}
        variables = {name: Node("i=1", f"/{name}") for name in ("VisionStateMachine", "AutomaticModeStateMachine")}
        session = cast("ClientSession", self)
        reader, jobs, late = StateReader(session, variables), dict[str, str](), LateResults("c", "s", self.station)
        events = OwnEvents("camera", {}, RecordingStation(), "station-1")
        results = VisionResults(session, parts, jobs, late, events)
        starts = StartPolicy(self.station, Repetition.REPEATABLE)
        camera = Camera(session, parts, state, reader, jobs, results, events, starts, ready_seconds=ready_seconds)
        if not self.mute:
            await camera.handle_event({"VisionStateMachine": "Operational", "AutomaticModeStateMachine": "Ready"})
        return camera


async def test_camera_without_state_reports_fails_the_command() -> None:
    camera = await Scripted(mute=True).opened(ready_seconds=0.05)
    with pytest.raises(Refused, match="does not report the changes of its state"):
        await camera.perform(WORK)


async def test_ended_jobs_are_not_kept_on_a_long_connection(wait_until: WaitUntil) -> None:
    device = Scripted()
    camera = await device.opened()
    for number in range(1, 4):
        command = replace(WORK, command_id=f"command-{number}")
        work = asyncio.create_task(camera.perform(command))
        await wait_until(lambda expected=number: device.jobs == expected)
        await device.result(camera)
        await work
        await camera.settle(command)
    assert camera._started == set()  # noqa: SLF001  what must not grow


async def test_result_of_an_earlier_job_with_the_same_id_is_not_used(wait_until: WaitUntil) -> None:
    scripted = Scripted()
    camera = await scripted.opened()
    scripted.jobs = 1
    await scripted.result(camera)
    scripted.jobs = 0
    working = asyncio.create_task(camera.perform(WORK))
    await wait_until(lambda: scripted.jobs == 1)
    assert not working.done()
    await scripted.result(camera)
    assert (await working)["job_id"] == "job-1"


async def test_result_with_another_measurement_id_is_refused(wait_until: WaitUntil) -> None:
    scripted = Scripted()
    camera = await scripted.opened()
    working = asyncio.create_task(camera.perform(WORK))
    await wait_until(lambda: scripted.jobs == 1)
    await camera.handle_event(
        {"EventType": "i=2", "IsPartial": False, "JobId": {"Id": "job-1"}, "MeasId": {"Id": "J2"}}
    )
    with pytest.raises(Refused, match="the result of the job job-1 is one of another MeasId: J2"):
        await working


@pytest.mark.parametrize("fields", [{"JobId": None}, {"JobId": "7"}, {"JobId": {"Id": 7}}, {"ResultState": []}])
async def test_invalid_result_of_a_camera_is_refused(fields: dict[str, Any]) -> None:
    camera = await Scripted().opened()
    with pytest.raises(Refused, match="a result is not as OPC 40100-1 has it"):
        await camera.handle_event({"EventType": "i=2", "IsPartial": False, "JobId": {"Id": "job-1"}, **fields})


@pytest.mark.parametrize("outputs", [[], [{"Id": "job-1"}, "good"]])
async def test_answer_of_a_camera_without_an_error_number_is_refused(outputs: list[Any]) -> None:
    class Odd(Scripted):
        async def call(self, _: Node, method: str, *__: object) -> list[Any]:
            return outputs if method == "StartSingleJob" else [{"Id": "1"}, True, 0]

    camera = await Odd().opened()
    with pytest.raises(Refused, match="StartSingleJob: "):
        await camera.perform(WORK)


@pytest.mark.parametrize("meas_id", [None, "serial 1"])
@pytest.mark.parametrize("outputs", [[0], [None, 0], [{"Id": 7}, 0], [{"Id": ""}, 0]])
async def test_result_of_a_job_without_a_job_id_is_found_by_its_meas_id(
    outputs: list[Any], meas_id: str | None, wait_until: WaitUntil
) -> None:
    class Odd(Scripted):
        async def call(self, _: Node, method: str, *__: object) -> list[Any]:
            self.jobs += method == "StartSingleJob"
            return outputs if method == "StartSingleJob" else [{"Id": "1"}, True, 0]

    odd = Odd()
    camera = await odd.opened()
    command = replace(WORK, parameters={"meas_id": meas_id} if meas_id else {})
    working = asyncio.create_task(camera.perform(command))
    await wait_until(lambda: odd.jobs == 1)
    for meas, result_id in (("of another", "R1"), (meas_id or WORK.command_id, "R2")):
        event = {"EventType": "i=2", "IsPartial": False, "ResultState": 1, "JobId": {"Id": "V1"}, "ResultContent": []}
        await camera.handle_event({**event, "MeasId": {"Id": meas}, "ResultId": {"Id": result_id}})
    assert (await working)["result_id"] == "R2"


@pytest.mark.parametrize("meas_id", [None, "serial 1"])
async def test_job_whose_result_is_not_reported_is_unknown(meas_id: str | None) -> None:
    """The command waited for ever: the event was lost, and the camera cannot be searched."""

    class Silent(Scripted):
        async def call(self, _: Node, method: str, *__: object) -> list[Any]:
            return [None, 0] if method == "StartSingleJob" else [{"Id": "1"}, True, 0]

    async def perform() -> None:
        camera = await Silent().opened()
        async with asyncio.timeout(600):
            await camera.perform(replace(WORK, parameters={"meas_id": meas_id} if meas_id else {}))

    with pytest.raises(DeviceOutcomeUnknownError, match="neither is at it nor has its result"):
        await asyncio.to_thread(run_virtual, perform())
