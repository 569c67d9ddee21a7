"""Secrets that foreign systems send are nowhere kept: in letters, attempts and refused messages."""

import json
from collections.abc import Callable

import msgpack
import pytest

from edge.store import dead_letters
from edge.store import stream_of_samples as telemetry
from edge.store.client import Store
from edge.store.commit import Commit
from edge.store.dead_letters import Letter, LetterKind, RefusedMessage
from edge.store.keys import Keys
from edge.store.reads import Entry
from edge.store.stream_of_samples import SendAttempt
from tests.model.planted_secrets import CANARY, PLANTED

Place = Callable[[Keys, str], Commit]


def _refusal(keys: Keys, payload: bytes, reason: str) -> Commit:
    return dead_letters.record_refusal(keys, RefusedMessage("mqtt", "t", "id", "kind", reason, payload))


PLACES: dict[str, Place] = {
    "batch": lambda keys, text: telemetry.dead_letter(keys, Entry("1-1", {"0": text}), text, 1),
    "line of a batch": lambda keys, text: telemetry.dead_letter(
        keys, Entry("1-1", {"0": json.dumps({"at": 1, "tag": "t", "value": text})}), "", 1
    ),
    "attempt": lambda keys, text: telemetry.record_attempt(keys, SendAttempt("a", "mqtt", text, text), 1),
    "letter of a job": lambda keys, text: dead_letters.add(
        keys, Letter(LetterKind.LATE, "s", "J", text, 1, {"data": json.dumps({"result": text})}), 1000
    ),
    "letter that cannot be read": lambda keys, text: dead_letters.add(
        keys, Letter(LetterKind.UNREADABLE, "s", "J", text, 1, {"event": text}), 1000
    ),
    "refused text": lambda keys, text: _refusal(keys, text.encode(), text),
    "refused JSON": lambda keys, text: _refusal(keys, json.dumps({"data": [text]}).encode(), ""),
    "refused MessagePack": lambda keys, text: _refusal(keys, msgpack.packb({"d\xe4ta": {"x": text}, "n": 300}), ""),
    "refused long text": lambda keys, text: _refusal(keys, text.encode() + b" " * 100_000, ""),
}


@pytest.mark.parametrize("place", PLACES)
async def test_no_planted_secret_is_kept(store: Store, place: str) -> None:
    for planted in PLANTED:
        await store.commit(PLACES[place](store.keys, planted))
    streams = (
        *(store.keys.telemetry_dlq(), store.keys.telemetry_attempts()),
        *(store.keys.sfc_dead_letters(), store.keys.late_results(), store.keys.event_refused_list()),
    )
    found = [str(await store.execute("XRANGE", key, "-", "+")) for key in streams]
    assert CANARY not in "".join(found).replace("***", "")
    assert sum(text.count("***") for text in found) >= len(PLANTED)
