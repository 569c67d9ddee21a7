"""The memory of rules is loaded as committed, without the states of other rules."""

from random import Random

import msgspec
import pytest

from edge.features.telemetry import keys as telemetry_keys
from edge.features.telemetry import rule_memory
from edge.features.telemetry.rule_memory import (
    MAX_PRODUCERS,
    StoredStates,
    StreamFacts,
    WindowChange,
    decode_digests,
    decode_facts,
    decode_state,
    decode_window,
    digest_of,
    encode_digests,
    encode_facts,
    encode_state,
    encode_window,
    load_memory,
)
from edge.features.telemetry.rules.baseline import BaselineState, latest_of, window_length
from edge.features.telemetry.rules.evaluator import RuleEvaluator
from edge.features.telemetry.rules.subject import RunningJobs
from edge.ports.sample_lines import Occurrence, Sample
from edge.store.client import Store
from edge.store.commit import Committed, Stale
from tests.features.telemetry.plant import HOT, rules_of

BASELINE = {"id": "dev", "kind": "baseline", "tag": "*", "severity": 3, "window_seconds": 1}


async def test_rule_memory_is_loaded_as_committed(store: Store) -> None:
    rules = rules_of(HOT, BASELINE)
    first = await load_memory(store, rules, 0)
    for at in range(0, 6000, 10):
        list(first.evaluator.feed(Sample(at, "wrench.temp", 90 + at % 70)))
        if not at % 170:
            commit = first.plan_commit(store.keys, first.facts)
            assert isinstance(await store.commit(commit), Committed)
    await store.commit(first.plan_commit(store.keys, first.facts))
    second = await load_memory(store, rules, 0)
    for key, state in first.evaluator.states.items():
        loaded = second.evaluator.states[key]
        assert (loaded.active, loaded.cooldown_until) == (state.active, state.cooldown_until)
    parts = await rule_memory.load_window(store, ("dev", "wrench.temp"))
    # Old samples are removed from the store after every eight new parts of 17 samples.
    assert sum(map(len, map(decode_window, parts))) < 100 + 9 * 17
    assert decode_window(parts[-1])[-1] == (5990, 130.0)


async def test_window_loaded_repeatedly_keeps_all_its_samples(store: Store) -> None:
    rules = rules_of(BASELINE)
    evaluator = RuleEvaluator(rules, 0)
    for at in range(0, 5000, 10):
        memory = await load_memory(store, rules, at)
        list(memory.evaluator.feed(Sample(at, "t", at % 70)))
        list(evaluator.feed(Sample(at, "t", at % 70)))
        assert isinstance(await store.commit(memory.plan_commit(store.keys, memory.facts)), Committed)
        # One memory in ten serves several commits, so that it trims.
        for later in range(at + 1, at + 10) if not at % 100 else ():
            list(memory.evaluator.feed(Sample(later, "t", later % 70)))
            list(evaluator.feed(Sample(later, "t", later % 70)))
            await store.commit(memory.plan_commit(store.keys, memory.facts))
    (subject_state,) = (await load_memory(store, rules, 5000)).evaluator.states.values()
    (expected,) = evaluator.states.values()
    assert isinstance(subject_state.detector, BaselineState)
    assert isinstance(expected.detector, BaselineState)
    count = window_length(expected.detector)
    assert latest_of(subject_state.detector, count) == latest_of(expected.detector, count)
    assert len(await rule_memory.load_window(store, ("dev", "t"))) < 400


async def test_commit_of_an_outdated_memory_is_refused(store: Store) -> None:
    rules = rules_of(HOT)
    first, second = await load_memory(store, rules, 0), await load_memory(store, rules, 0)
    assert isinstance(await store.commit(first.plan_commit(store.keys, first.facts)), Committed)
    assert isinstance(await store.commit(second.plan_commit(store.keys, second.facts)), Stale)


async def test_states_and_window_of_a_changed_rule_are_dropped(store: Store) -> None:
    first = await load_memory(store, rules_of(BASELINE), 0)
    list(first.evaluator.feed(Sample(0, "t", 1)))
    await store.commit(first.plan_commit(store.keys, first.facts))
    second = await load_memory(store, rules_of(BASELINE | {"sigma": 4}), 0)
    assert second.evaluator.states == {}
    await store.commit(second.plan_commit(store.keys, second.facts))
    assert await rule_memory.load_window(store, ("dev", "t")) == []
    assert (await rule_memory.load(store)).states == {}


async def test_unreadable_state_is_reset(store: Store) -> None:
    rules = rules_of(HOT)
    first = await load_memory(store, rules, 0)
    list(first.evaluator.feed(Sample(0, "wrench.temp", 90)))
    await store.commit(first.plan_commit(store.keys, first.facts))
    await store.execute("HSET", telemetry_keys.telemetry_state(store.keys), '["hot","wrench.temp"]', "{")
    assert (await load_memory(store, rules, 0)).evaluator.states == {}
    await store.execute("HSET", telemetry_keys.telemetry_state(store.keys), "facts", "{")
    assert (await load_memory(store, rules, 0)).facts.at == 0


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


ONE, OTHER = ("r", 'odd "name"'), ("r2", "s")


async def test_states_are_read_as_written_and_removed(store: Store) -> None:
    assert await rule_memory.load(store) == StoredStates()
    first = rule_memory.save(store.keys, 0, "facts", {ONE: "1", OTHER: "2"})
    assert isinstance(await store.commit(first), Committed)
    assert isinstance(await store.commit(first), Stale)
    await store.commit(rule_memory.save(store.keys, 1, "later", {OTHER: None}))
    assert await rule_memory.load(store) == StoredStates(2, "later", {ONE: "1"})
    await store.commit(rule_memory.save(store.keys, 2, "later", {}, "rules"))
    await store.commit(rule_memory.save(store.keys, 3, "later", {}))
    assert (await rule_memory.load(store)).rules == "rules"


async def test_window_grows_and_is_trimmed(store: Store) -> None:
    await store.commit(rule_memory.save_window(store.keys, ONE, WindowChange(("a", "b", "c"), None)))
    await store.commit(rule_memory.save_window(store.keys, ONE, WindowChange(("d",), 2)))
    assert await rule_memory.load_window(store, ONE) == ["c", "d"]
    assert await rule_memory.load_window(store, OTHER) == []
    await store.commit(rule_memory.save_window(store.keys, ONE, WindowChange((), 0)))
    assert await rule_memory.load_window(store, ONE) == []
