"""A recipe asks a person: each way answers, exactly one answer counts, and a kill loses neither question nor answer."""

import contextlib
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.outside.conftest import Plant
from tests.outside.plant import METHOD, RECIPE_SCHEMA, SETTING, TIGHTENING, order
from tests.outside.servers import EDGE, wait_for
from tests.outside.test_decisions import _edge, _rpc, _with_rpc

pytestmark = pytest.mark.slow

PREFIX = "com.example.station.operator"
PEOPLE = f"""
[southbound.people]
kind = "operator"
type_ids = ["{PREFIX}.confirm.v1", "{PREFIX}.choose.v1", "{PREFIX}.enter.v1"]
"""


def asking(kind: str, **parameters: Any) -> dict[str, Any]:
    """Return a recipe that asks once."""
    action = {
        "name": "ask",
        "step": "Tighten",
        "qualifier": "N",
        "interaction": "push_command",
        "type_id": f"{PREFIX}.{kind}.v1",
        "parameters": {"title": {"en": "Seat the cable", "de": "Kabel einlegen"}} | parameters,
    }
    return TIGHTENING | {"actions": [action]}


CHOOSING = asking("choose", choices=[{"value": "ok"}, {"value": "defective"}])


@pytest.fixture
def further_settings() -> str:
    """The people at the station."""
    return PEOPLE


def prompts(plant: Plant) -> list[dict[str, Any]]:
    """Return the open prompts, as the command lists them."""
    listed = _edge(plant, "prompts", "list", "--json")
    assert listed.returncode == 0, listed.stderr
    found: list[dict[str, Any]] = json.loads(listed.stdout)
    return found


def wait_for_prompt(plant: Plant) -> dict[str, Any]:
    """Wait until one prompt is open."""
    wait_for(lambda: prompts(plant), "the prompt is open")
    (prompt,) = prompts(plant)
    return prompt


def result(plant: Plant, job_id: str = "J1") -> dict[str, Any]:
    """Return the data of the result that the MES has, by their ids."""
    plant.mes.client.wait(lambda: plant.mes.result(job_id), "the result of the job", 60)
    return {value["ID"]: value for value in plant.mes.result(job_id)["JobResponseData"]}


def resolved_by(plant: Plant, job_id: str = "J1") -> list[str]:
    """Return who answered the attempts of a job."""
    attempts = result(plant, job_id)["Attempts"]["Subparameters"]
    return [fact["Value"] for attempt in attempts for fact in attempt["Subparameters"] if fact["ID"] == "resolved_by"]


def test_a_prompt_is_answered_and_its_answer_is_a_result(plant: Plant) -> None:
    plant.mes.configure(recipe=CHOOSING)
    assert plant.mes.start_job("J1").status == 1
    prompt = wait_for_prompt(plant)
    assert (prompt["job_order_id"], prompt["title"]) == ("J1", "Seat the cable")
    refused = _edge(plant, "prompts", "answer", prompt["id"], "--choice", "neither")
    assert (refused.returncode, "one of: ok, defective" in refused.stderr) == (1, True)
    done = _edge(plant, "prompts", "answer", "J1", "--choice", "defective", "--json")
    assert json.loads(done.stdout)["result"] == {"choice": "defective"}
    plant.mes.wait_for_state("J1", "Ended", 60)
    assert result(plant)["ask"]["Subparameters"] == [{"ID": "choice", "Value": "defective"}]
    assert len(resolved_by(plant)) == 1
    assert _edge(plant, "jobs", "replay", "J1").returncode == 0
    assert "answer to ask 1 by" in _edge(plant, "jobs", "history", "J1").stdout
    records = json.loads(_edge(plant, "audit", "list", "--json").stdout)
    assert [record["subject"] for record in records if record["action"] == "prompts answer"][-1:] == ["J1/ask"]


def test_a_recipe_with_a_faulty_prompt_is_refused_by_name(plant: Plant, tmp_path: Path) -> None:
    recipe = asking("choose", choices=[{"value": "ok"}], sign="pin", colour="red")
    file = tmp_path / "recipe.json"
    file.write_text(json.dumps(recipe))
    checked = _check(file)
    assert "unknown parameter 'colour'" in checked
    signed = asking("confirm", sign="eyes")
    item = {"ID": "WM-2", "data": signed, "dataschema": RECIPE_SCHEMA}
    answer = plant.mes.ask(SETTING.format("workmaster"), [item])
    assert answer.attributes["mdcserrorkind"] == "recipe"
    assert "sign: Invalid enum value 'eyes'" in json.dumps(answer.data)


def _check(file: Path) -> str:
    done = subprocess.run([EDGE, "check", "recipe", file], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    return done.stdout


CALL = "com.github.aschamberger.microdcs.prompt.{}.v1"


def test_the_mes_and_a_sidecar_list_and_answer_a_prompt(plant: Plant, tmp_path: Path) -> None:
    socket_path = _with_rpc(plant, tmp_path)
    plant.mes.configure(recipe=CHOOSING)
    for job_id in ("J1", "J2"):
        assert plant.mes.start_job(job_id).status == 1
        prompt = wait_for_prompt(plant)
        data = {"Prompt": prompt["id"], "Choice": "ok", "By": "anna"}
        if job_id == "J1":
            listed = plant.mes.ask(CALL.format("List"), {}).data["prompts"]
            answered = plant.mes.ask(CALL.format("Answer"), data).data
        else:
            listed = _rpc(socket_path, CALL.format("List"), {}, id="list")["data"]["prompts"]
            answered = _rpc(socket_path, CALL.format("Answer"), data)["data"]
        assert listed == [prompt]
        assert (answered["result"], answered["by"]) == ({"choice": "ok"}, "anna")
        plant.mes.wait_for_state(job_id, "Ended", 60)
        assert resolved_by(plant, job_id) == ["anna"]
        late = plant.mes.ask(CALL.format("Answer"), data)
        assert late.attributes["mdcserrorkind"] in {"not_open", "unknown_prompt"}


MUST_LOG_IN = [{"role": "operator"}, {"second_person": True}, {"sign": "pin"}, {"sign": "badge"}]


@pytest.mark.parametrize("parameters", MUST_LOG_IN, ids=str)
def test_the_mes_cannot_answer_where_a_person_must_log_in(plant: Plant, parameters: dict[str, Any]) -> None:
    plant.mes.configure(recipe=asking("confirm", **parameters))
    assert plant.mes.start_job("J1").status == 1
    prompt = wait_for_prompt(plant)
    assert prompt["needs_login"]
    refused = plant.mes.ask(CALL.format("Answer"), {"Prompt": prompt["id"], "By": "anna"})
    assert refused.attributes["mdcserrorkind"] == "no_login"
    assert prompts(plant) == [prompt]


def test_neither_a_sidecar_nor_the_command_line_signs(plant: Plant, tmp_path: Path) -> None:
    socket_path = _with_rpc(plant, tmp_path)
    plant.mes.configure(recipe=asking("confirm", sign="any"))
    assert plant.mes.start_job("J1").status == 1
    prompt = wait_for_prompt(plant)
    refused = _rpc(socket_path, CALL.format("Answer"), {"Prompt": prompt["id"], "By": "anna"})
    assert refused["mdcserrorkind"] == "no_login"
    by_command = _edge(plant, "prompts", "answer", prompt["id"])
    assert (by_command.returncode, "asks for a signature by PIN or badge" in by_command.stderr) == (1, True)
    assert prompts(plant) == [prompt]


@pytest.mark.parametrize("point", ["decided", "committed", "handled"])
def test_a_call_that_is_repeated_after_a_kill_has_one_answer(plant: Plant, point: str) -> None:
    plant.mes.configure(recipe=CHOOSING)
    assert plant.mes.start_job("J1").status == 1
    data = {"Prompt": wait_for_prompt(plant)["id"], "Choice": "ok", "By": "anna"}
    plant.gateway.stop()
    # The same event, twice, from a MES that does not know whether the first one arrived.
    calls = [plant.mes.send(CALL.format("Answer"), data, id="answer-1") for _ in range(2)]
    for count in (1, 3, 5, 7):
        plant.gateway.environment["EDGE_FAULT"] = f"{point}:{count}"
        with contextlib.suppress(AssertionError):
            plant.gateway.start()
        with contextlib.suppress(AssertionError):
            wait_for(lambda: not plant.gateway.is_alive, "the gateway is killed", 3)
        plant.gateway.kill()
    del plant.gateway.environment["EDGE_FAULT"]
    plant.gateway.start()
    plant.mes.client.wait(lambda: all(map(plant.mes.answer_to, calls)), "both answers", 60)
    answers = [json.loads(received.payload) for received in map(plant.mes.answer_to, calls) if received]
    assert [answer["id"] for answer in answers] == [data["Prompt"], data["Prompt"]]
    plant.mes.wait_for_state("J1", "Ended", 60)
    assert resolved_by(plant) == ["anna"]


def test_exactly_one_of_many_answers_counts(plant: Plant) -> None:
    plant.mes.configure(recipe=CHOOSING)
    assert plant.mes.start_job("J1").status == 1
    prompt = wait_for_prompt(plant)
    with ThreadPoolExecutor(4) as pool:
        choices = ["ok", "defective"] * 3
        answers = [
            pool.submit(_edge, plant, "prompts", "answer", prompt["id"], "--choice", choice) for choice in choices
        ]
        ended = [answer.result() for answer in answers]
    assert sorted(answer.returncode for answer in ended) == [0, 1, 1, 1, 1, 1]
    chosen = next(choice for choice, answer in zip(choices, ended, strict=True) if answer.returncode == 0)
    assert result(plant)["ask"]["Subparameters"] == [{"ID": "choice", "Value": chosen}]


@pytest.mark.parametrize("point", ["decided", "committed", "sent", "handled"])
def test_a_kill_at_each_point_keeps_the_prompt_and_its_answer(plant: Plant, point: str) -> None:
    plant.mes.configure(recipe=CHOOSING)
    for count in _PASSES[point]:
        job_id = f"J{count}"
        plant.gateway.stop()
        # The broker keeps the call for the gateway, and delivers it again to the one after the kill.
        plant.mes.send(METHOD.format("StoreAndStart"), order(job_id))
        plant.gateway.environment["EDGE_FAULT"] = f"{point}:{count}"
        with contextlib.suppress(AssertionError):
            plant.gateway.start()
        wait_for(lambda: not plant.gateway.is_alive, f"the gateway passes {point} {count} times")
        plant.gateway.kill()
        del plant.gateway.environment["EDGE_FAULT"]
        plant.gateway.start()
        wait_for(lambda job_id=job_id: _asked(plant, job_id), f"the prompt of {job_id} is open")  # type: ignore[misc]
        done = _edge(plant, "prompts", "answer", job_id, "--choice", "ok")
        assert done.returncode == 0, done.stderr
        assert _edge(plant, "prompts", "answer", job_id, "--choice", "ok").returncode == 1
        plant.mes.wait_for_state(job_id, "Ended", 60)
        assert len(resolved_by(plant, job_id)) == 1
    assert prompts(plant) == []


_PASSES = {"decided": (3, 6, 9, 12), "committed": (3, 6, 9, 12), "sent": (1,), "handled": (1,)}
"""Point -> at which of its passes the gateway is killed: the start has some of its own."""


def _asked(plant: Plant, job_id: str) -> bool:
    return any(prompt["job_order_id"] == job_id for prompt in prompts(plant))
