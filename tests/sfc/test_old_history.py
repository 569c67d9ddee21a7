"""Histories that release 0.9.0 stored are read, and replayed, as before."""

from pathlib import Path

import msgspec
import pytest

from edge.sfc.history import StoredDecision, decode_changes, encode_changes, read_record
from edge.sfc.replay import differing_fields, replay
from edge.sfc.run_fields import decode
from tests.sfc.recipes import net_of

OLD_HISTORIES = (Path(__file__).parent / "old_history.jsonl").read_bytes().splitlines()
"""Runs as release 0.9.0 stored them: the recipe, the fields of the run, and the records of its decisions."""


@pytest.mark.parametrize("line", OLD_HISTORIES, ids=range(len(OLD_HISTORIES)))
def test_history_that_release_0_9_stored_is_replayed(line: bytes) -> None:
    old = msgspec.json.decode(line)
    net, run = net_of(old["recipe"]), decode(old["run"])
    stored_decisions = [StoredDecision(*record) for record in old["records"]]
    repeated = replay(net, run, [read_record(net, run, decision) for decision in stored_decisions])
    assert repeated.differences == ()
    assert differing_fields(run, repeated.run) == ()
    # What is recorded now is the same.
    for decision in stored_decisions:
        record = read_record(net, run, decision)
        codes, steps = encode_changes(net, record.changes)
        assert decode_changes(net, codes, steps) == record.changes


def test_old_histories_have_every_code_and_the_short_form() -> None:
    texts = [record[3] for line in OLD_HISTORIES for record in msgspec.json.decode(line)["records"]]
    changes = "".join(text.partition("[")[0] for text in texts if not text.startswith("{"))
    assert set("pdwcftsuxBTQSR+->.") <= set(changes)
