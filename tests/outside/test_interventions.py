"""A person moves a job on by command, MES, RPC and OPC UA; the job, its result, its history and the audit show it."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.outside.conftest import Plant
from tests.outside.plant import TIGHTEN_ACTION, TIGHTENING
from tests.outside.servers import wait_for
from tests.outside.test_decisions import (
    CONTROL,
    DATA,
    GOOD,
    RESOLVE,
    _audit,
    _edge,
    _mes,
    _opcua,
    _resolve_call,
    _rpc,
    _with_rpc,
)

pytestmark = pytest.mark.slow

INTERVENE = "com.github.aschamberger.microdcs.intervene.v1"
AWAITS_SECOND = 1 << 34
PERSON = "com.github.aschamberger.microdcs.AwaitsPerson.v1"
ATTENDED = TIGHTENING | {"actions": [TIGHTEN_ACTION | {"interventions": ["retry", "skip"]}]}

Intervention = Callable[[Plant, Path, str, str], None]
"""Takes the kind and the reason."""


def _call(kind: str, reason: str, **fields: object) -> dict[str, Any]:
    data = {"Data": DATA} if kind == "skip" else {}
    return {"JobOrderID": "J1", "Kind": kind, "Action": "tighten", "By": "anna", "Reason": reason} | data | fields


def _by_command(plant: Plant, _: Path, kind: str, reason: str) -> None:
    data = ("--data", json.dumps(DATA)) if kind == "skip" else ()
    done = _edge(plant, "jobs", kind, "J1", "tighten", *data, "--reason", reason)
    assert done.returncode == 0, done.stderr


def _by_mes(plant: Plant, _: Path, kind: str, reason: str) -> None:
    assert _mes(plant, INTERVENE, _call(kind, reason)) == (None, {"ReturnStatus": 1})


def _by_rpc(_plant: Plant, socket_path: Path, kind: str, reason: str) -> None:
    # Each call of this client has the same id, and would get the answer of the first.
    assert _rpc(socket_path, INTERVENE, _call(kind, reason), id=reason)["data"] == {"ReturnStatus": 1}


def _by_opcua(plant: Plant, _: Path, kind: str, reason: str) -> None:
    method, data = ("SkipAction", (json.dumps(DATA),)) if kind == "skip" else ("RetryAction", ())
    texts = ("J1", "tighten", "", reason, *data)
    assert _opcua(plant, CONTROL, method, *texts) == {"status": GOOD, "outputs": [1]}


def _fail(plant: Plant, attempt: int) -> None:
    """Answer the command of an attempt as failed."""
    plant.wrench.client.wait(lambda: len(plant.wrench.starts()) == attempt, f"attempt {attempt}", 60)
    failed = {"causationid": plant.wrench.starts()[-1], "mdcserrorkind": "failed", "mdcserrormessage": "torque low"}
    plant.wrench.client.publish(f"{plant.wrench.topic}/answers", "", failed, confirm=None)
    wait_for(lambda: f"torque low, attempt {attempt}" in _edge(plant, "jobs", "why", "J1").stdout, "the failure")


@pytest.mark.parametrize("way", [_by_command, _by_mes, _by_rpc, _by_opcua], ids=lambda value: value.__name__)
def test_a_failed_action_is_retried_and_skipped(plant: Plant, tmp_path: Path, way: Intervention) -> None:
    socket_path = _with_rpc(plant, tmp_path) if way is _by_rpc else tmp_path
    plant.mes.configure(recipe=ATTENDED)
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    _fail(plant, 1)
    if way is _by_command:
        wait_for(lambda: "gateway.job_awaits_person" in _edge(plant, "alarms", "list", "--json").stdout, "its alarm")
    way(plant, socket_path, "retry", "bit replaced")
    _fail(plant, 2)
    way(plant, socket_path, "skip", "done by hand")
    plant.mes.wait_for_state("J1", "Ended", 60)
    plant.mes.client.wait(lambda: "done by hand" in json.dumps(plant.mes.result("J1")), "the result of the job", 60)
    assert len(plant.wrench.starts()) == 2
    found = {value["ID"]: value for value in plant.mes.result("J1")["JobResponseData"]}
    kinds = [subparameter["Subparameters"][0]["Value"] for subparameter in found["Interventions"]["Subparameters"]]
    assert kinds == ["retry", "skip"]
    assert "AwaitsIntervention" not in found
    for reason in ("bit replaced", "done by hand"):
        wait_for(lambda reason=reason: _audit(plant, reason), f"the audit record of {reason}")  # type: ignore[misc]
    history = _edge(plant, "jobs", "history", "J1").stdout
    assert "bit replaced" in history
    assert "done by hand" in history
    replayed = _edge(plant, "jobs", "replay", "J1")
    assert replayed.returncode == 0, replayed.stdout


def test_a_retry_of_an_unknown_outcome_starts_the_tool_once(plant: Plant) -> None:
    plant.mes.configure(recipe=ATTENDED)
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command", 60)
    unknown = {"causationid": plant.wrench.starts()[0], "mdcserrorkind": "unknown"}
    plant.wrench.client.publish(f"{plant.wrench.topic}/answers", "", unknown, confirm=None)
    wait_for(lambda: ": unknown" in _edge(plant, "jobs", "why", "J1").stdout, "the outcome is unknown")
    with ThreadPoolExecutor() as pool:
        retry = ("jobs", "retry", "J1", "tighten", "--reason", "no bolt there")
        commands = [pool.submit(_edge, plant, *retry) for _ in range(3)]
        calls = [plant.mes.send(INTERVENE, _call("retry", "no bolt there"), id="retry-1") for _ in range(2)]
        ended = sorted(command.result().returncode for command in commands)
    plant.mes.client.wait(lambda: all(map(plant.mes.answer_to, calls)), "both answers", 60)
    statuses = [
        json.loads(received.payload)["ReturnStatus"] for received in map(plant.mes.answer_to, calls) if received
    ]
    accepted = ended.count(0) + int(statuses[0] == 1)
    assert (accepted, statuses[0]) == (1, statuses[1]), (ended, statuses)
    plant.wrench.release()
    plant.mes.wait_for_state("J1", "Ended", 60)
    assert len(plant.wrench.starts()) == 2


def _questions(plant: Plant) -> set[str]:
    """Return the kinds of questions to people that the MES has received."""
    events = [received for received in list(plant.mes.client.received) if received.attributes.get("type") == PERSON]
    return {question["Kind"] for event in events for question in event.data["Questions"]}


def test_second_user_with_a_login_confirms_a_mes_intervention(plant: Plant) -> None:
    settings = plant.gateway.settings
    settings.write_text(f'{settings.read_text()}\n[users]\nsecond_person = ["skip"]\n')
    plant.gateway.stop()
    plant.gateway.start()
    plant.mes.configure(recipe=ATTENDED)
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    _fail(plant, 1)
    assert _mes(plant, INTERVENE, _call("skip", "by hand"))[1]["ReturnStatus"] == AWAITS_SECOND
    plant.mes.client.wait(lambda: "AwaitsSecondPerson" in _questions(plant), "the event of the wait", 60)
    refused = _mes(plant, INTERVENE, _call("skip", "by hand", By="bert"))[1]
    assert refused["ReturnStatus"] == 8
    assert "login at the gateway" in refused["Reason"]
    other = _edge(plant, "jobs", "skip", "J1", "tighten", "--reason", "seen")
    assert (other.returncode, "another result" in other.stderr) == (1, True)
    _by_command(plant, Path(), "skip", "seen, it is tight")
    plant.mes.wait_for_state("J1", "Ended", 60)


def test_second_user_with_a_login_confirms_a_resolved_outcome(plant: Plant) -> None:
    settings = plant.gateway.settings
    settings.write_text(f'{settings.read_text()}\n[users]\nsecond_person = ["skip"]\n')
    plant.gateway.stop()
    plant.gateway.start()
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command", 60)
    unknown = {"causationid": plant.wrench.starts()[-1], "mdcserrorkind": "unknown"}
    plant.wrench.client.publish(f"{plant.wrench.topic}/answers", "", unknown, confirm=None)
    wait_for(lambda: ": unknown" in _edge(plant, "jobs", "why", "J1").stdout, "the outcome is unknown")
    assert _mes(plant, RESOLVE, _resolve_call())[1]["ReturnStatus"] == AWAITS_SECOND
    refused = _mes(plant, RESOLVE, _resolve_call(By="bert"))[1]
    assert (refused["ReturnStatus"], "login at the gateway" in refused["Reason"]) == (8, True)
    assert "waits for a second person" in _edge(plant, "jobs", "why", "J1").stdout
    seen = ("--done", "--data", json.dumps(DATA), "--reason", "seen, it is tight")
    assert _edge(plant, "jobs", "resolve", "J1", "tighten", *seen).returncode == 0
    plant.mes.wait_for_state("J1", "Ended", 60)


def test_intervention_not_listed_in_the_recipe_is_refused(plant: Plant) -> None:
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command", 60)
    for fields in ({}, {"Kind": "retry"}, {"Kind": "complete", "Step": "Tighten"}):
        refused = _mes(plant, INTERVENE, _call("skip", "by hand", **fields))[1]
        assert (refused["ReturnStatus"], "does not allow" in refused["Reason"]) == (8, True), refused
    forced = _mes(plant, INTERVENE, _call("force", "by hand", Step="Tighten", Target="Done"))[1]
    assert forced["ReturnStatus"] == 8
