"""`edge marks` shows the senders of marks and drops those of one."""

import json

import pytest

from edge.model.job_state import Cause
from edge.store import audit, dedupe
from edge.store.client import Store
from edge.store.dead_letters import RefusedMessage, record_refusal
from edge.store.dedupe import equipment_sender
from tests.cli.calling import Edge
from tests.station.plant import Plant


async def test_senders_are_listed_with_their_marks(edge: Edge, store: Store) -> None:
    assert (await edge("marks", "list")).output == "no marks\n"
    await store.commit(dedupe.mark(store.keys, "/mes", "1", "null", 60_000))
    await store.commit(dedupe.mark(store.keys, "/tool", "1", "null", 60_000, equipment_sender("wrench")))
    shown = (await edge("marks", "list")).output
    assert [line.split() for line in shown.splitlines()[1:]] == [
        ["events:wrench", "1", "125000", "0%"],
        ["calls:/mes", "1", "250000", "0%"],
    ]
    (first, _) = json.loads((await edge("marks", "list", "--json")).output)
    assert first == {"sender": "events:wrench", "marks": 1, "share": 125_000}


async def test_marks_of_a_sender_are_dropped_and_recorded(edge: Edge, store: Store) -> None:
    await store.commit(dedupe.mark(store.keys, "/mes", "1", "null", 60_000))
    assert (await edge("marks", "drop", "calls:/mes")).output == "calls:/mes: 1 marks dropped\n"
    assert await dedupe.load_answer(store, "/mes", "1") is None
    refused = await edge("marks", "drop", "calls:/mes")
    assert refused.exit_code == 1
    assert "no mark is of 'calls:/mes'" in refused.output
    statuses = [json.loads(sealed_record.text)["status"] async for sealed_record in audit.read_all(store)]
    assert statuses[0] == "Good"
    assert statuses[1].startswith("no mark is of")


NONE = "0 messages refused, 0 calls declined since the store was created\n"


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
async def test_empty_list_shows_both_counters(edge: Edge) -> None:
    assert (await edge("refused")).output == NONE
    assert json.loads((await edge("refused", "--json")).output) == []


@pytest.mark.usefixtures("plant_that_refused")
async def test_newest_message_is_first_with_reason_and_payload(edge: Edge) -> None:
    first, reason, named, payload, second, *rest = (await edge("refused")).output.splitlines()
    assert first.endswith("  rpc  unknown_type")
    assert reason == "  type 'none.v1' is not known here."
    assert named == "  type none.v1, id 7"
    assert payload == "  {'a':  }" + "x" * 392 + " …"
    assert second.endswith("  app/jobs/station-1/commands  unreadable")
    assert rest == ["  not a CloudEvent.", "2 messages refused, 0 calls declined since the store was created"]
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
async def test_json_output_has_the_stored_payload(edge: Edge) -> None:
    shown = json.loads((await edge("refused", "--json")).output)
    assert (shown[0]["way"], shown[0]["id"], shown[0]["kind"]) == ("rpc", "7", "unknown_type")
    assert len(shown[0]["payload"]) == 508
    assert shown[0]["at"].endswith("Z")
    assert (shown[1]["type"], shown[1]["id"], shown[1]["payload"]) == (None, None, "")


async def test_declined_call_is_shown_once_with_status_and_job(edge: Edge, plant: Plant) -> None:
    for _ in range(2):
        assert (await plant.ask(Cause.PAUSE, "J9", event_id="c1")).status == 2
    (shown,) = json.loads((await edge("refused", "--json")).output)
    assert (shown["way"], shown["id"], shown["kind"]) == ("mes", "c1", "declined")
    assert shown["type"] == "org.opcfoundation.ISA95-JOBCONTROL_V2.Pause.v2"
    assert shown["reason"] == "ReturnStatus UNKNOWN_JOB_ORDER_ID (2): no such job order in this scope"
    assert json.loads(shown["payload"]) == {"JobOrderID": "J9"}
    report = (await edge("refused")).output.splitlines()
    assert report[-1] == "0 messages refused, 1 call declined since the store was created"


async def test_secrets_of_a_refused_message_are_not_shown(edge: Edge, plant: Plant) -> None:
    payload = b'{"JobOrder": 7, "password": "hunter2", "url": "redis://u:s3cret@host/0"}'
    refused = RefusedMessage("app/jobs/station-1/commands", "", "", "invalid_payload", "token=abc123 is wrong", payload)
    await plant.store.commit(record_refusal(plant.store.keys, refused))
    for shown in ((await edge("refused")).output, (await edge("refused", "--json")).output):
        assert "JobOrder" in shown
        assert not any(secret in shown for secret in ("hunter2", "s3cret", "abc123"))
