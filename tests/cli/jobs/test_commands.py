"""`edge jobs` calls the methods of a MES directly on the store of the gateways."""

import json
from datetime import datetime
from pathlib import Path

import pytest

from edge.cli.terminal.operator import operator_name
from edge.model.isa95 import LocalizedText, ReturnStatus
from edge.model.job_state import Cause, JobState
from edge.sfc.signal import Phase
from edge.station.stored_job import find
from edge.store import runs
from tests.cli.calling import Edge
from tests.station.plant import FakeEquipment, Plant, obliging, order, until, until_true

ORDER = json.dumps({"JobOrderID": "J1", "WorkMasterID": [{"ID": "linear"}], "Priority": 7})


@pytest.mark.usefixtures("plant")
async def test_a_stored_job_is_listed_shown_and_removed(edge: Edge) -> None:
    answer = await edge("jobs", "store", "-", "--comment", "by hand", given=ORDER)
    assert (answer.exit_code, answer.output) == (0, "J1: NotAllowedToStart (Ready)\n")
    listed = await edge("jobs", "list")
    head, row = listed.output.splitlines()
    assert head.split() == ["id", "scope", "state", "priority", "Work", "Master", "started", "ended", "error"]
    assert row.split() == ["J1", "station-1", "NotAllowedToStart", "(Ready)", "7", "linear"]
    shown = (await edge("jobs", "show", "J1")).output
    assert "J1  NotAllowedToStart (Ready)  in scope station-1" in shown
    assert "by hand" in shown
    assert (await edge("jobs", "cancel", "J1")).output == "J1: removed\n"
    assert (await edge("jobs", "list")).output == "no jobs\n"


async def test_job_started_by_the_command_is_executed_by_the_gateway(
    edge: Edge, plant: Plant, tool: FakeEquipment
) -> None:
    tool.replies = obliging
    async with plant.at_work():
        assert (await edge("jobs", "store", "-", "--start", given=ORDER)).exit_code == 0
        await plant.until_state("J1", JobState.ENDED)
    assert tool.received() == ["a", "b"]


async def test_job_started_without_a_gateway_waits_for_the_gateway(
    edge: Edge, plant: Plant, tool: FakeEquipment
) -> None:
    tool.replies = obliging
    await edge("jobs", "store", "-", given=ORDER)
    assert (await edge("jobs", "start", "J1")).output == "J1: AllowedToStart (Ready)\n"
    async with plant.at_work():
        await plant.until_state("J1", JobState.ENDED)


async def test_stop_of_a_job_aborted_by_the_command_is_sent_by_the_gateway(
    edge: Edge, plant: Plant, tool: FakeEquipment
) -> None:
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: "a" in tool.received())
        answer = await edge("jobs", "abort", "J1", "--comment", "wrong car")
        assert answer.output == "J1: Aborted\n"
        await until_true(lambda: tool.received(Phase.STOP) == ["a"])
    assert (await plant.job("J1")).comment == (LocalizedText(text="wrong car"),)
    assert str((await plant.job("J1")).error) == f"aborted by {operator_name()} at the command line"
    assert "at the command line" in (await edge("jobs", "show", "J1")).output


async def test_gateway_continues_a_job_paused_and_resumed_by_the_command(
    edge: Edge, plant: Plant, tool: FakeEquipment
) -> None:
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: "a" in tool.received())
        assert (await edge("jobs", "pause", "J1")).output == "J1: Interrupted (Suspended)\n"
        await plant.answer(tool.commands[0])
        assert (await edge("jobs", "resume", "J1")).output == "J1: Running\n"
        await until_true(lambda: "b" in tool.received())
        assert (await edge("jobs", "stop", "J1")).output == "J1: Ended (Closed)\n"
        assert (await edge("jobs", "clear", "J1")).output == "J1: removed\n"


async def test_revoke_and_update_call_their_methods(edge: Edge, plant: Plant) -> None:
    await edge("jobs", "store", "-", given=ORDER)
    await edge("jobs", "start", "J1")
    assert (await edge("jobs", "revoke", "J1")).output == "J1: NotAllowedToStart (Ready)\n"
    assert (await edge("jobs", "update", "-", given=ORDER.replace("7", "9"))).exit_code == 0
    assert (await plant.job("J1")).order.priority == 9


async def test_job_of_any_scope_is_found_by_its_id(edge: Edge, plant: Plant) -> None:
    await plant.store.execute("SADD", plant.store.keys.workmaster_list("station-9"), "linear")
    await plant.order(Cause.STORE, order("J9"), scope="station-9")
    assert (await edge("jobs", "list")).output == "no jobs\n"
    assert "J9" in (await edge("jobs", "list", "--scope", "station-9")).output
    assert (await edge("station", "show", "--scope", "station-9")).exit_code == 0
    assert (await edge("jobs", "start", "J9")).exit_code == 0


async def test_list_is_filtered_by_state(edge: Edge, plant: Plant) -> None:
    await plant.order(Cause.STORE, order("J1"))
    await plant.order(Cause.STORE, order("J2"))
    await plant.ask(Cause.ABORT, "J2")
    listed = await edge("jobs", "list", "--state", "aborted", "--state", "Ended", "--json")
    assert [load["job_order_id"] for load in json.loads(listed.output)] == ["J2"]


async def test_json_list_has_instants_in_utc(edge: Edge, plant: Plant) -> None:
    await plant.order(Cause.STORE, order("J1"))
    (job,) = json.loads((await edge("jobs", "list", "--json")).output)
    assert datetime.fromisoformat(job.pop("stored_at")).utcoffset() is not None
    assert job == {
        "job_order_id": "J1",
        "scope": "station-1",
        "state": "NotAllowedToStart",
        "substate": "Ready",
        "priority": None,
        "work_master": "linear",
        "started_at": None,
        "ended_at": None,
        "start_at": None,
        "error": None,
        "outcome": None,
        "verdict": None,
        "recipe_revision": None,
        "recipe_hash": None,
        "comment": None,
        "identifier": None,
    }


async def test_json_report_has_order_run_and_response_of_a_job(edge: Edge, plant: Plant, tool: FakeEquipment) -> None:
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: "a" in tool.received())
        await plant.answer(tool.commands[0], {"torque": 85.2})
        await until_true(lambda: "b" in tool.received())
    shown = json.loads((await edge("jobs", "show", "J1", "--json")).output)
    assert shown["order"] == {"JobOrderID": "J1", "WorkMasterID": [{"ID": "linear"}]}
    assert [(step["step"], step["active"], step["count"]) for step in shown["steps"]] == [
        ("one", False, 1),
        ("two", True, 1),
    ]
    first, second = shown["actions"]
    assert (first["action"], first["state"], first["sending"]) == ("a", "completed", "sent")
    assert (second["action"], second["state"], second["attempt"]) == ("b", "dispatched", 1)
    assert shown["response"]["JobOrderID"] == "J1"


async def _has_sent_all(plant: Plant) -> bool:
    stored_run = await runs.load(plant.store, "J1")
    return stored_run is not None and not stored_run.unsent


async def _waits_unsent(plant: Plant) -> bool:
    stored_job = await find(plant.store, "J1")
    return stored_job is not None and bool(stored_job.unsent)


async def test_command_that_did_not_leave_is_not_sent_yet(edge: Edge, plant: Plant, tool: FakeEquipment) -> None:
    tool.reachable = False
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until(lambda: _waits_unsent(plant))
        lines = (await edge("jobs", "why", "J1")).output.splitlines()
        waits = json.loads((await edge("jobs", "why", "J1", "--json")).output)["waits"]
        shown = json.loads((await edge("jobs", "show", "J1", "--json")).output)
    assert lines[3] == "      not met: steps.one.done: a is not sent yet"
    assert lines[4].startswith("  action a of one: not sent yet for ")
    assert waits["actions"][0]["sent"] is False
    assert shown["actions"][0]["sent_at"] is None


async def test_reason_of_a_running_job_names_its_unmet_condition(edge: Edge, plant: Plant, tool: FakeEquipment) -> None:
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: "a" in tool.received())
        await until(lambda: _has_sent_all(plant))
        lines = (await edge("jobs", "why", "J1")).output.splitlines()
        waits = json.loads((await edge("jobs", "why", "J1", "--json")).output)["waits"]
    assert lines[0] == "J1: Running; it accepts: pause, stop, abort"
    assert lines[1].startswith("  A: waits for ")
    assert lines[2].startswith("  transition one → two [")
    assert lines[3] == "      not met: steps.one.done: a is dispatched"
    assert lines[4].startswith("  action a of one: dispatched for ")
    assert waits["transitions"][0]["unmet"] == [{"term": "steps.one.done", "because": "a is dispatched"}]
    assert waits["actions"][0]["age_seconds"] >= 0


@pytest.mark.parametrize(
    ("command", "status", "advice"),
    [
        (
            ("pause", "J1"),
            ReturnStatus.INVALID_JOB_ORDER_STATUS,
            "in this state it accepts: start, abort, cancel, update",
        ),
        (("start", "J2"), ReturnStatus.UNKNOWN_JOB_ORDER_ID, "edge jobs list"),
        (("start", "list:station-1"), ReturnStatus.UNKNOWN_JOB_ORDER_ID, "edge jobs list"),
        (("start", ""), ReturnStatus.UNKNOWN_JOB_ORDER_ID, "edge jobs list"),
    ],
)
async def test_refusal_reports_status_reason_and_advice(
    edge: Edge, plant: Plant, command: tuple[str, ...], status: ReturnStatus, advice: str
) -> None:
    await plant.order(Cause.STORE, order("J1"))
    answer = await edge("jobs", *command)
    assert answer.exit_code == 1
    assert answer.stdout == ""
    assert f"is refused: {status.name} ({status.value}): " in answer.stderr
    assert advice in answer.stderr
    as_json = await edge("jobs", *command, "--json")
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout)["return_status"] == status


@pytest.mark.parametrize(
    ("given", "status", "advice"),
    [
        ({"JobOrderID": ""}, ReturnStatus.INVALID_REQUEST, "Correct the job order."),
        ({"JobOrderID": "J2", "WorkMasterID": [{"ID": "no"}]}, ReturnStatus.UNABLE_TO_ACCEPT_JOB_ORDER, "station set"),
        ({"JobOrderID": "J1"}, ReturnStatus.INVALID_JOB_ORDER_STATUS, "It is NotAllowedToStart (Ready)"),
    ],
)
async def test_refused_order_reports_the_reason(
    edge: Edge, plant: Plant, given: dict[str, object], status: ReturnStatus, advice: str
) -> None:
    await plant.order(Cause.STORE, order("J1"))
    answer = await edge("jobs", "store", "-", given=json.dumps(given))
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert f"{status.name} ({status.value})" in answer.stderr
    assert advice in answer.stderr


@pytest.mark.parametrize("command", ["show", "why", "watch"])
async def test_unknown_job_is_reported_with_the_command_that_lists_jobs(edge: Edge, command: str) -> None:
    answer = await edge("jobs", command, "J1")
    assert answer.exit_code == 1
    assert answer.stderr.splitlines() == ["edge: there is no job order 'J1'", "edge: Find its id: edge jobs list"]


@pytest.mark.usefixtures("plant")
async def test_order_is_read_from_a_file_or_standard_input(edge: Edge, tmp_path: Path) -> None:
    file = tmp_path / "order.json"
    file.write_text(ORDER)
    assert (await edge("jobs", "store", file)).exit_code == 0


async def test_unreadable_job_is_named_in_one_line_of_the_list(edge: Edge, plant: Plant) -> None:
    """The traceback went to the terminal, with all that other jobs held."""
    await plant.order(Cause.STORE, order("J1"))
    await plant.order(Cause.STORE, order("J2"))
    await plant.store.execute("HSET", plant.store.keys.joborder("J1"), "order", "{")
    answer = await edge("jobs", "list")
    assert answer.exit_code == 0
    assert "J2" in answer.stdout
    assert "DecodeError: Input data was truncated" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert len(answer.stderr.splitlines()) == 1
