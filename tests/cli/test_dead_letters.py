"""`edge dead-letters` lists dead letters, retries them and drops them."""

import json

import pytest

from edge.cli.dead_letters import report
from edge.model.job_state import Cause, JobState
from edge.station.public_letter import public_letter
from edge.store import dead_letters
from edge.store import stream_of_samples as telemetry
from edge.store.dead_letters import Letter, LetterKind
from edge.store.reads import Entry, entries
from tests.cli.calling import Edge
from tests.station.plant import SCOPE, FakeEquipment, Plant, obliging, order

AT = 1_700_000_000_000


@pytest.fixture
async def letter_id(plant: Plant) -> str:
    """The letter of a job that failed."""
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.ask(Cause.ABORT, "J1")
    letter = Letter(LetterKind.START, SCOPE, "J1", "its start met a defect", AT)
    await plant.store.commit(dead_letters.add(plant.store.keys, letter, 60_000))
    (found,) = await dead_letters.load_all(plant.store)
    return found


async def test_empty_list_of_dead_letters_is_reported(edge: Edge) -> None:
    assert (await edge("dead-letters", "list")).output == "no dead letters\n"
    assert json.loads((await edge("dead-letters", "list", "--json")).output) == []


async def test_letters_are_listed_for_people_and_programs(edge: Edge, letter_id: str) -> None:
    listed = await edge("dead-letters", "list")
    assert listed.exit_code == 0
    assert all(word in listed.output for word in (letter_id, "J1", "start of a job", "its start met a defect"))
    (reported,) = json.loads((await edge("dead-letters", "list", "--json")).output)
    assert (reported["id"], reported["job_order_id"], reported["at"]) == (letter_id, "J1", "2023-11-14T22:13:20.000Z")


async def test_dead_letter_is_shown_completely(edge: Edge, letter_id: str) -> None:
    result = await edge("dead-letters", "show", letter_id)
    assert "the job runs again from its beginning" in result.output
    assert json.loads((await edge("dead-letters", "show", letter_id, "--json")).output)["scope"] == SCOPE


async def test_dead_letter_is_retried(edge: Edge, plant: Plant, tool: FakeEquipment, letter_id: str) -> None:
    tool.replies = obliging
    async with plant.at_work():
        answer = await edge("dead-letters", "retry", letter_id)
        assert answer.output == f"{letter_id}: retried for job J1\n"
        await plant.until_state("J1", JobState.ENDED)
    again = await edge("dead-letters", "retry", letter_id)
    assert again.exit_code == 1
    assert "there is no dead letter" in again.stderr


@pytest.mark.parametrize("chosen", [True, False])
async def test_dead_letters_are_dropped(edge: Edge, plant: Plant, letter_id: str, *, chosen: bool) -> None:
    answer = await edge("dead-letters", "drop", letter_id if chosen else "--all")
    assert answer.output == "dropped: 1\n"
    assert await dead_letters.load_all(plant.store) == {}


@pytest.mark.parametrize("arguments", [(), ("1-0", "--all")])
async def test_drop_without_a_selection_is_refused(edge: Edge, arguments: tuple[str, ...]) -> None:
    assert (await edge("dead-letters", "drop", *arguments)).exit_code == 2


async def test_drop_of_an_unknown_letter_drops_no_other_letter(edge: Edge, plant: Plant, letter_id: str) -> None:
    answer = await edge("dead-letters", "drop", letter_id, "1-0")
    assert answer.exit_code == 1
    assert len(await dead_letters.load_all(plant.store)) == 1


async def test_batch_of_samples_is_listed_evaluated_again_and_dropped(edge: Edge, plant: Plant) -> None:
    store = plant.store
    fields = {"producer": "p", "number": "7", "at": str(AT), "0": '{"at":1,"tag":"t","value":1}'}
    for number in (1, 2):
        entry = Entry(f"{number}-0", fields)
        await store.commit(telemetry.dead_letter(store.keys, entry, "it met a defect", AT))
    first, second = await dead_letters.load_all(store)
    listed = await edge("dead-letters", "list")
    assert all(word in listed.output for word in (first, second, "batch of samples", "it met a defect"))
    assert '"tag":"t"' in (await edge("dead-letters", "show", first)).output
    assert (await edge("dead-letters", "retry", first)).output == f"{first}: retried\n"
    (again,) = [item.fields for item in entries(await store.execute("XRANGE", store.keys.telemetry(), "-", "+"))]
    assert again == fields | {"producer": ""}
    assert (await edge("dead-letters", "drop", second)).output == "dropped: 1\n"
    assert await dead_letters.load_all(store) == {}


DETAILS = {"phase": "stop", "command_id": "J1/r/a/1", "step": "one", "type_id": "a.v1"}


@pytest.mark.parametrize(
    ("kind", "details", "what", "retried"),
    [
        (LetterKind.START, {}, "start of a job", "the job runs again from its beginning"),
        (LetterKind.DECISION, {}, "decision on a job", "the job runs again from its beginning"),
        (LetterKind.DEADLINE, {}, "deadline of a job", "the job runs again from its beginning"),
        (LetterKind.COMMAND, DETAILS, "command: stop", "the stop is sent again"),
        (LetterKind.COMMAND, DETAILS | {"phase": "start"}, "command: start", "the job runs again from its beginning"),
        (LetterKind.UNREADABLE, {"x": "y\x1b[2J"}, "unreadable entry", "the entry returns to the work stream"),
    ],
)
def test_each_kind_of_dead_letter_is_reported(
    kind: LetterKind, details: dict[str, str], what: str, retried: str
) -> None:
    lines = list(report("1-0", Letter(kind, "s", "J1", "because", 0, details)))
    assert any(line.split(maxsplit=1) == ["what", what] for line in lines)
    assert lines[-1].split(maxsplit=1) == ["retry", retried]
    assert "\x1b" not in "".join(lines)


def test_letter_without_a_job_shows_no_job() -> None:
    assert public_letter("1-0", Letter(LetterKind.UNREADABLE, "s", "", "because", 0)).job_order_id is None
