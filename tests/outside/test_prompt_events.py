"""A MES learns of each prompt that opens and ends, also of those that came and went while the broker was away."""

import contextlib
from typing import Any

import pytest

from tests.outside.conftest import Plant
from tests.outside.servers import wait_for
from tests.outside.test_decisions import _edge
from tests.outside.test_prompts import CHOOSING, PEOPLE, PREFIX, asking, prompts, wait_for_prompt

pytestmark = pytest.mark.slow

EVENT = "com.github.aschamberger.microdcs.prompt.v1"
CALL = "com.github.aschamberger.microdcs.prompt.{}.v1"


@pytest.fixture
def further_settings() -> str:
    """The people at the station."""
    return PEOPLE


def events(plant: Plant) -> dict[str, dict[str, Any]]:
    """Return the events about prompts by their ids, in the order of their first arrival."""
    found: dict[str, dict[str, Any]] = {}
    for received in list(plant.mes.client.received):
        if received.attributes.get("type") == EVENT:
            found.setdefault(received.attributes["id"], received.data)
    return found


def changes(plant: Plant) -> list[tuple[str, str, str]]:
    return [(data["prompt"]["action"], data["change"], data["by"]) for data in events(plant).values()]


def twice() -> dict[str, Any]:
    """Return a recipe that asks in one step, and in the next one again."""
    recipe = asking("choose", choices=[{"value": "ok"}, {"value": "defective"}])
    (first,) = recipe["actions"]
    second = first | {
        "name": "again",
        "step": "Again",
        "type_id": f"{PREFIX}.confirm.v1",
        "parameters": {"title": "Sure?"},
    }
    return recipe | {
        "steps": [{"name": "Tighten", "initial": True}, {"name": "Again"}, {"name": "Done"}],
        "transitions": [
            {"source": "Tighten", "target": "Again", "condition": "always"},
            {"source": "Again", "target": "Done", "condition": "always"},
        ],
        "actions": [first, second],
    }


def test_the_mes_learns_of_a_prompt_and_of_its_answer(plant: Plant) -> None:
    plant.mes.configure(recipe=CHOOSING)
    assert plant.mes.start_job("J1").status == 1
    plant.mes.client.wait(lambda: changes(plant), "the prompt opens", 60)
    (opened,) = events(plant).values()
    assert opened["prompt"] == wait_for_prompt(plant)
    answered = plant.mes.ask(CALL.format("Answer"), {"Prompt": opened["prompt"]["id"], "Choice": "ok", "By": "anna"})
    assert answered.data["result"] == {"choice": "ok"}
    plant.mes.client.wait(lambda: len(changes(plant)) == 2, "the prompt ends", 60)
    assert changes(plant) == [("ask", "opened", ""), ("ask", "ended", "anna")]
    ended = list(events(plant).values())[1]
    assert (ended["outcome"], ended["result"]) == ("completed", {"choice": "ok"})


def test_prompts_during_an_outage_of_the_broker_are_published_after_it(plant: Plant) -> None:
    plant.mes.configure(recipe=twice())
    assert plant.mes.start_job("J1").status == 1
    plant.mes.client.wait(lambda: len(changes(plant)) == 1, "the first prompt opens", 60)
    plant.broker.stop()
    for options in (("--choice", "ok"), ()):
        wait_for(lambda: prompts(plant), "a prompt is open")
        done = _edge(plant, "prompts", "answer", "J1", *options)
        assert done.returncode == 0, done.stderr
    assert prompts(plant) == []
    plant.broker.start()
    plant.mes.client.wait(lambda: len(changes(plant)) == 4, "all events arrive", 60)
    assert [(action, change) for action, change, _ in changes(plant)] == [
        ("ask", "opened"),
        ("ask", "ended"),
        ("again", "opened"),
        ("again", "ended"),
    ]


@pytest.mark.parametrize("point", ["decided", "committed", "sent"])
def test_a_kill_loses_no_event_of_a_prompt(plant: Plant, point: str) -> None:
    plant.mes.configure(recipe=twice())
    for count in range(1, 4):
        job_id = f"J{count}"
        assert plant.mes.start_job(job_id).status == 1
        wait_for(lambda: prompts(plant), "the prompt is open")
        plant.gateway.stop()
        plant.gateway.environment["EDGE_FAULT"] = f"{point}:{count}"
        with contextlib.suppress(AssertionError):
            plant.gateway.start()
        for options in (("--choice", "ok"), ()):
            wait_for(lambda: prompts(plant), "a prompt is open")
            assert _edge(plant, "prompts", "answer", job_id, *options).returncode == 0
        plant.gateway.kill()
        del plant.gateway.environment["EDGE_FAULT"]
        plant.gateway.start()
        plant.mes.wait_for_state(job_id, "Ended", 60)
        plant.mes.client.wait(lambda count=count: len(changes(plant)) == 4 * count, "all events", 60)  # type: ignore[misc]
    assert len({data["prompt"]["id"] for data in events(plant).values()}) == 6
