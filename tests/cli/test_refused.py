"""`edge refused` shows what could not be taken, and why."""

import json

import pytest

from edge.store.refused import RefusedMessage, record_refusal
from tests.cli.calling import Edge
from tests.station.plant import Plant


@pytest.fixture
async def plant_that_refused(plant: Plant) -> Plant:
    for message in (
        RefusedMessage("app/jobs/station-1/commands", "", "", "unreadable", "not a CloudEvent.", b""),
        RefusedMessage(
            "rpc", "none.v1", "7", "unknown_type", "type 'none.v1' is not known here.", b"{'a': \x1b}" + b"x" * 500
        ),
    ):
        await plant.store.commit(record_refusal(plant.store.keys, message))
    return plant


@pytest.mark.usefixtures("plant")
async def test_nothing_is_a_word(edge: Edge) -> None:
    assert (await edge("refused")).output == "nothing was refused\n"
    assert json.loads((await edge("refused", "--json")).output) == []


@pytest.mark.usefixtures("plant_that_refused")
async def test_the_newest_comes_first_with_reason_and_beginning(edge: Edge) -> None:
    first, reason, named, payload, second, *rest = (await edge("refused")).output.splitlines()
    assert first.endswith("  rpc  unknown_type")
    assert reason == "  type 'none.v1' is not known here."
    assert named == "  type none.v1, id 7"
    assert payload == "  {'a':  }" + "x" * 392 + " …"
    assert second.endswith("  app/jobs/station-1/commands  unreadable")
    assert rest == ["  not a CloudEvent.", "2 refused since the store began"]
    assert len((await edge("refused", "--last", "1")).output.splitlines()) == 5


async def test_damaged_counter_is_reported_after_the_messages(edge: Edge, plant_that_refused: Plant) -> None:
    key = plant_that_refused.store.keys.counter("refused")
    await plant_that_refused.store.execute("SET", key, "many")
    answer = await edge("refused")
    assert answer.exit_code == 1
    assert "  not a CloudEvent." in answer.stdout.splitlines()
    assert answer.stderr.splitlines() == [
        f"edge: the counter cannot be read: {key} holds 'many'",
        f"edge: Find out who has written it, then start again: redis-cli DEL {key}",
    ]
    assert (await edge("refused", "--json")).exit_code == 0


@pytest.mark.usefixtures("plant_that_refused")
async def test_a_program_is_told_all_that_is_kept(edge: Edge) -> None:
    told = json.loads((await edge("refused", "--json")).output)
    assert (told[0]["way"], told[0]["id"], told[0]["kind"]) == ("rpc", "7", "unknown_type")
    assert len(told[0]["payload"]) == 508
    assert told[0]["at"].endswith("Z")
    assert (told[1]["type"], told[1]["id"], told[1]["payload"]) == (None, None, "")
