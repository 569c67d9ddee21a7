"""`edge marks` shows the senders of marks and drops those of one."""

import json

from edge.store import audit, dedupe
from edge.store.client import Store
from edge.store.mark_senders import equipment_sender
from tests.cli.calling import Edge


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
