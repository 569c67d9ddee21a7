"""A greeting is not a contract: revisions are found, learnt, and fixed by settings, at the strict controller."""

from typing import Any

import pytest

from edge.equipment.remembered_text import RememberedText
from edge.features.openprotocol.controller_opening import LEARNT_REVISIONS, LearntRevisions
from edge.features.openprotocol.device import OpenProtocolTimes
from edge.features.openprotocol.protocol.mids import Mid
from edge.features.openprotocol.protocol.session import SessionTimes
from edge.features.openprotocol.settings import OpenProtocolSettings
from edge.model.equipment_connection import ConnectionFault
from tests.conftest import WaitUntil
from tests.equipment.recording_station import RecordingStation
from tests.equipment.strict_controller import TIMES, attached, bolt, completed, memory_at, strict
from tests.outside.devices.openprotocol_controller import StrictController, open_strict_controller
from tests.outside.devices.openprotocol_quirks import Quirks


def starts(controller: StrictController) -> list[int]:
    """Return the revisions of MID 0001 that the gateway has sent, in order."""
    return [revision for mid, revision, _ in controller.received if mid == Mid.START]


def results(controller: StrictController) -> list[int]:
    """Return the revisions of MID 0060 that the gateway has sent, in order."""
    return [revision for mid, revision, _ in controller.received if mid == Mid.RESULT_SUBSCRIBE]


@pytest.mark.parametrize("error", [97, 79, 75, 74, 1, 99])
async def test_declined_start_is_tried_with_older_revisions(wait_until: WaitUntil, error: int) -> None:
    async with strict(wait_until, Quirks(newest_start=2, start_error=error)) as bench:
        assert starts(bench.controller) == [6, 5, 4, 3, 2]
        assert (await completed(bench, wait_until, bolt(1)))["evaluation"] == "OK"


async def test_controller_that_closes_after_a_decline_is_connected(wait_until: WaitUntil) -> None:
    async with strict(wait_until, Quirks(newest_start=1, closes=True)) as bench:
        assert starts(bench.controller) == [6, 5, 4, 3, 2, 1]
        assert bench.controller.connections == 6
        assert (await completed(bench, wait_until, bolt(1)))["evaluation"] == "OK"


async def test_controller_silent_for_new_revisions_is_connected(wait_until: WaitUntil) -> None:
    async with strict(wait_until, Quirks(newest_start=4, silent=True)) as bench:
        assert starts(bench.controller) == [6, 5, 4]
        assert bench.controller.connections == 3


async def test_reason_is_new_when_something_silent_takes_the_port(wait_until: WaitUntil) -> None:
    """The reason of the last try is not shown while all revisions are tried."""
    times = OpenProtocolTimes(SessionTimes(connect=10.0, answer=3.0))
    quirks = Quirks(unanswered=frozenset({1}))
    async with open_strict_controller(quirks) as controller, attached(controller, times=times) as bench:
        async with controller.unplugged():
            await wait_until(lambda: bench.equipment.connection.fault == ConnectionFault.REFUSED)
        await wait_until(lambda: bench.equipment.connection.fault == ConnectionFault.SILENT, 12.0)
        assert "MID 0001" in str(bench.equipment.connection.reason)


@pytest.mark.parametrize(
    "quirks",
    [
        Quirks(newest_start=3, own=True),
        Quirks(greeting={"system": "PF6", "sequence": "A", "client": " ", "cell": "A001"}),
        Quirks(greeting_length=37),
        Quirks(greeting_length=64),
        Quirks(greeting={"name": ""}),
    ],
)
async def test_peculiar_greeting_is_accepted(wait_until: WaitUntil, quirks: Quirks) -> None:
    async with strict(wait_until, quirks) as bench:
        assert starts(bench.controller) == [6]
        assert (await completed(bench, wait_until, bolt(1)))["evaluation"] == "OK"
        assert bench.controller.violations == []


@pytest.mark.parametrize(("error", "reason"), [(96, "another client is connected already"), (16, "busy")])
async def test_start_declined_because_of_another_client_is_not_tried_older(
    wait_until: WaitUntil, error: int, reason: str
) -> None:
    quirks = Quirks(newest_start=0, start_error=error)
    async with open_strict_controller(quirks) as controller, attached(controller) as bench:
        await wait_until(lambda: len(starts(controller)) > 2)
        assert set(starts(controller)) == {6}
        assert reason in str(bench.equipment.connection.reason)


@pytest.mark.parametrize("quirks", [Quirks(newest_start=3, closes=True), Quirks(newest_start=3, silent=True)])
async def test_learnt_revision_survives_connection_and_restart(wait_until: WaitUntil, quirks: Quirks) -> None:
    station = RecordingStation()
    async with open_strict_controller(quirks) as controller:
        for _ in range(2):
            async with attached(controller, station) as bench:
                await wait_until(lambda bench=bench: bench.equipment.connected)
                async with controller.unplugged():
                    await wait_until(lambda bench=bench: not bench.equipment.connected)
                await wait_until(lambda bench=bench: bench.equipment.connected)
        assert starts(controller) == [6, 5, 4, 3, 3, 3, 3]


async def test_connection_cut_during_the_start_teaches_no_older_revision(wait_until: WaitUntil) -> None:
    async with open_strict_controller(Quirks(unanswered=frozenset({1}))) as controller, attached(controller) as bench:
        await wait_until(lambda: starts(controller))
        async with controller.unplugged():
            controller.quirks.unanswered = frozenset()
        await wait_until(lambda: bench.equipment.connected)
        assert starts(controller) == [6, 6]


async def test_replaced_controller_with_other_revisions_is_connected(wait_until: WaitUntil) -> None:
    """The spare takes only newer revisions than the learnt one."""
    station = RecordingStation()
    async with open_strict_controller(Quirks(newest_result=6)) as controller:
        station.memory[memory_at(controller)] = {"revisions": "1:2 60:1 what 64:x"}
        async with attached(controller, station) as bench:
            await wait_until(lambda: bench.equipment.connected)
            assert (starts(controller), results(controller)) == ([2], [1])
            controller.quirks.refused = {60: 97}
            async with controller.unplugged():
                pass
            await wait_until(lambda: len(results(controller)) >= 7)
            assert results(controller)[1:7] == [1, 6, 5, 4, 3, 2]


@pytest.mark.parametrize(("newest", "error"), [(1, 97), (2, 79), (3, 74), (1, 75)])
async def test_older_revision_of_results_is_learnt(wait_until: WaitUntil, newest: int, error: int) -> None:
    quirks = Quirks(newest_result=newest, result_error=error)
    async with strict(wait_until, quirks) as bench:
        assert results(bench.controller) == list(range(6, newest - 1, -1))
        assert (await completed(bench, wait_until, bolt(1)))["evaluation"] == "OK"
        assert "60:" in bench.station.memory[memory_at(bench.controller)]["revisions"]


async def test_setting_fixes_the_revision_of_a_message(wait_until: WaitUntil) -> None:
    fixed: dict[str, Any] = {"0001": 2, "0060": 1, "0064": 1}
    async with strict(wait_until, revisions=fixed) as bench:
        assert (starts(bench.controller), results(bench.controller)) == ([2], [1])
        assert (await completed(bench, wait_until, bolt(1)))["evaluation"] == "OK"


async def test_unanswered_optional_messages_leave_the_tool_in_use(wait_until: WaitUntil) -> None:
    """Identifiers, alarms, relays, curves, lists of programs and the tool: nothing of it is indispensable."""
    silent = frozenset({51, 70, 216, 8, 10, 30, 40, 14, 34})
    times = TIMES.__class__(TIMES.session.__class__(connect=10.0, answer=2.0, optional=0.1), poll=0.2, curves=0.2)
    events = {"parameter_set": "set.v1", "job": "job.v1"}
    async with (
        open_strict_controller(Quirks(unanswered=silent)) as controller,
        attached(controller, times=times, traces="on", events=events) as bench,
    ):
        await wait_until(lambda: bench.equipment.connected)
        assert (await completed(bench, wait_until, bolt(1)))["evaluation"] == "OK"
        assert controller.connections == 1
        await wait_until(lambda: silent <= set(controller.mids()))


async def test_learnt_revisions_are_written_only_when_they_change() -> None:
    station, writes = RecordingStation(), list[str]()

    class Counting(RecordingStation):
        async def remember(self, equipment: str, texts: Any) -> None:
            writes.append(texts["revisions"])
            await super().remember(equipment, texts)

    station = Counting()
    settings = OpenProtocolSettings(kind="openprotocol", type_ids=("t",), url="tcp://x", revisions={"0060": 1})
    learnt = LearntRevisions(settings, RememberedText(station, "wrench", LEARNT_REVISIONS))
    revisions = await learnt.load()
    assert revisions.candidates(Mid.RESULT_SUBSCRIBE, (6, 1)) == (1,)
    for revision in (3, 3, 4):
        revisions.accept(Mid.START, revision)
        await learnt.save()
    assert writes == ["1:3", "1:4"]
