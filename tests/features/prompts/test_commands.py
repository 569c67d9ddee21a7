"""`edge prompts` lists and answers the prompts of a store; a gateway continues the job."""

import json
from pathlib import Path

import pytest

from edge.model.job_state import JobState
from edge.store import audit
from edge.store.client import Store
from tests.cli.calling import Edge
from tests.cli.conftest import edge, settings_file  # noqa: F401 - fixtures
from tests.features.prompts.conftest import ask, start
from tests.features.prompts.recipes import CHOOSE, CONFIRM, ENTER, TYPES, prompt
from tests.station.plant import Plant

pytestmark = pytest.mark.slow


@pytest.fixture
def station(plant: Plant, settings_file: Path) -> Plant:  # noqa: F811 - a fixture
    """The station whose settings have the people."""
    types = ", ".join(f'"{type_id}"' for type_id in sorted(TYPES))
    settings_file.write_text(
        f'{settings_file.read_text()}[gateway]\nscopes = ["station-1"]\n'
        f'[southbound.people]\nkind = "operator"\ntype_ids = [{types}]\n'
    )
    return plant


async def test_prompts_are_listed_with_how_to_answer(edge: Edge, station: Plant) -> None:  # noqa: F811
    assert (await edge("prompts", "list")).output == "no prompt is open\n"
    await ask(station, "J1", CHOOSE)
    shown = (await edge("prompts", "list")).output
    assert "J1" in shown
    assert "Seat the cable" in shown
    assert "--choice ok | defective" in shown
    (only,) = json.loads((await edge("prompts", "list", "--json")).output)
    assert (only["job_order_id"], only["kind"], only["title"]) == ("J1", "choose", "Seat the cable")
    assert [choice["value"] for choice in only["choices"]] == ["ok", "defective"]


async def test_prompt_is_answered_by_its_job_and_by_its_id(edge: Edge, station: Plant, store: Store) -> None:  # noqa: F811
    await ask(station, "J1", CHOOSE)
    done = await edge("prompts", "answer", "J1", "--choice", "ok")
    assert (done.exit_code, done.output) == (0, "job J1: ask is answered\n")
    assert (await station.job("J1")).status.state is JobState.ENDED
    await ask(station, "J2", ENTER)
    (only,) = json.loads((await edge("prompts", "list", "--json")).output)
    values = ("--value", "mass=5,5", "--value", "serial=S=1")
    answered = json.loads((await edge("prompts", "answer", only["id"], *values, "--json")).output)
    assert answered["result"] == {"mass": {"value": 5.5, "unit": "kg"}, "serial": "S=1"}
    records = [json.loads(sealed_record.text) async for sealed_record in audit.read_all(store)]
    assert [(record["action"], record["subject"]) for record in records] == [
        ("prompts answer", "J1/ask"),
        ("prompts answer", "J2/ask"),
    ]


async def test_refusals_have_their_reason_and_are_recorded(edge: Edge, station: Plant, store: Store) -> None:  # noqa: F811
    await ask(station, "J1", CHOOSE)
    wrong = await edge("prompts", "answer", "J1", "--choice", "no")
    assert (wrong.exit_code, "one of: ok, defective" in wrong.output) == (1, True)
    unknown = await edge("prompts", "answer", "J9")
    assert (unknown.exit_code, "no prompt 'J9' is open" in unknown.output) == (1, True)
    assert (await edge("prompts", "answer", "J1", "--value", "x")).exit_code == 2
    statuses = [json.loads(sealed_record.text)["status"] async for sealed_record in audit.read_all(store)]
    assert ["one of" in statuses[0], "J9" in statuses[1], len(statuses)] == [True, True, 2]


async def test_job_with_two_prompts_needs_the_id(edge: Edge, station: Plant) -> None:  # noqa: F811
    recipe = {
        "steps": [{"name": "Ask", "initial": True}, {"name": "A"}, {"name": "B"}, {"name": "End"}],
        "branches": [{"name": "both", "type": "simultaneous", "branches": [["A"], ["B"]]}],
        "transitions": [
            {"source": "Ask", "target": "both", "condition": "always"},
            {"source": "both", "target": "End", "condition": "always"},
        ],
        "actions": [{**CONFIRM, "step": "A"}, {**CONFIRM, "step": "B", "name": "other"}],
    }
    await start(station, "J1", recipe)
    refused = await edge("prompts", "answer", "J1")
    assert (refused.exit_code, "has 2 open prompts" in refused.output) == (1, True)


@pytest.mark.parametrize("sign", ["pin", "badge", "any"])
async def test_command_does_not_sign(edge: Edge, station: Plant, store: Store, sign: str) -> None:  # noqa: F811
    await ask(station, "J1", prompt("confirm", sign=sign))
    refused = await edge("prompts", "answer", "J1")
    assert (refused.exit_code, "asks for a signature by" in refused.output) == (1, True)
    assert len(json.loads((await edge("prompts", "list", "--json")).output)) == 1
    (record,) = [json.loads(sealed_record.text) async for sealed_record in audit.read_all(store)]
    assert "asks for a signature by" in record["status"]


async def test_first_of_two_people_waits(edge: Edge, station: Plant) -> None:  # noqa: F811
    await ask(station, "J1", prompt("confirm", second_person=True))
    first = await edge("prompts", "answer", "J1")
    assert (first.exit_code, first.output) == (0, "job J1: ask waits for a second person\n")
    (only,) = json.loads((await edge("prompts", "list", "--json")).output)
    assert only["first_by"]
