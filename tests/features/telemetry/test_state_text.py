"""States are encoded as text; the window of a baseline is stored separately."""

from random import Random

import msgspec
import pytest

from edge.features.telemetry.rules.evaluator import RuleEvaluator
from edge.features.telemetry.rules.running_jobs import RunningJobs
from edge.features.telemetry.state_text import (
    MAX_PRODUCERS,
    StreamFacts,
    decode_digests,
    decode_facts,
    decode_state,
    decode_window,
    digest_of,
    encode_digests,
    encode_facts,
    encode_state,
    encode_window,
)
from edge.ports.sample_lines import Occurrence, Sample
from tests.features.telemetry.plant import rules_of

EVERY_KIND = [
    {"id": "limit", "kind": "limit", "tag": "t", "limits": {"high": {"at": 5}}, "severity": 1},
    {"id": "chart", "kind": "control_chart", "tag": "t", "learn": 5, "severity": 1},
    {"id": "rate", "kind": "rate", "tag": "t", "per_second": 1, "severity": 1},
    {"id": "stale", "kind": "stale", "tag": "t", "seconds": 1, "severity": 1},
    {"id": "share", "kind": "share", "tag": "t", "bad": 2, "of": 5, "severity": 1},
    {"id": "enters", "kind": "enters", "tag": "t", "severity": 1, "once": "job"},
    {"id": "when", "kind": "expression", "when": "t > 5", "severity": 1},
    {"id": "occurs", "kind": "occurs", "pattern": "*", "severity": 1, "cooldown_seconds": 100},
]


def test_state_of_every_kind_is_decoded_unchanged() -> None:
    evaluator = RuleEvaluator(rules_of(*EVERY_KIND), 0)
    chance = Random(1)
    list(evaluator.feed(Occurrence(0, "job.started", "J", None)))
    for at in range(1, 30):
        list(evaluator.feed(Sample(at, "t", chance.choice([1, 2.5, 9, True, "NotOK"]))))
    assert len(evaluator.states) == len(EVERY_KIND)
    for state in evaluator.states.values():
        assert decode_state(encode_state(state), []) == state


def test_window_of_a_baseline_is_encoded_separately() -> None:
    evaluator = RuleEvaluator(rules_of({"id": "b", "kind": "baseline", "tag": "t", "severity": 1}), 0)
    for at in range(1, 400):
        list(evaluator.feed(Sample(at, "t", at / 7)))
    (state,) = evaluator.states.values()
    text = encode_state(state)
    assert len(text) < 200
    assert decode_state(text, [(at, at / 7) for at in range(1, 400)]) == state


def test_window_is_encoded_with_time_differences() -> None:
    samples = [(1_700_000_000_000, 81.5), (1_700_000_000_020, 82.0), (1_700_000_000_020, -1e300)]
    text = encode_window(samples)
    assert text == "[1700000000000,81.5,20,82.0,0,-1e+300]"
    assert decode_window(text) == samples
    assert decode_window("[1700000000000,81.5]") == samples[:1]
    for damaged in ("[1]", "{}", '["x",1]', "["):
        with pytest.raises((ValueError, msgspec.DecodeError)):
            decode_window(damaged)


def test_facts_are_decoded_unchanged() -> None:
    facts = StreamFacts(5, RunningJobs(("J",), 3), {"p": 7})
    assert decode_facts(encode_facts(facts)) == facts
    assert decode_facts("") == StreamFacts()
    with pytest.raises(msgspec.DecodeError):
        decode_facts("{")


def test_longest_silent_producers_are_dropped_first() -> None:
    facts = StreamFacts()
    for number in range(MAX_PRODUCERS + 5):
        facts = facts.with_batch("steady", number).with_batch(f"p{number}", 1)
    assert len(facts.producers) == MAX_PRODUCERS
    assert facts.producers["steady"] == MAX_PRODUCERS + 4
    assert "p0" not in facts.producers


def test_digest_changes_with_the_rule() -> None:
    one, other = rules_of(EVERY_KIND[2], EVERY_KIND[2] | {"id": "x"})
    assert digest_of(one) == digest_of(rules_of(EVERY_KIND[2])[0])
    assert digest_of(one) != digest_of(other)


def test_digests_are_decoded_and_unreadable_digests_are_empty() -> None:
    assert decode_digests(encode_digests({"r": "x"})) == {"r": "x"}
    assert decode_digests("") == decode_digests("[1") == {}
