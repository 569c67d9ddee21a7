"""The memory of rules is loaded as committed, without the states of other rules."""

from edge.features.telemetry.rule_memory import load_memory
from edge.features.telemetry.rules.baseline import BaselineState, latest_of, window_length
from edge.features.telemetry.rules.evaluator import RuleEvaluator
from edge.features.telemetry.state_text import decode_window
from edge.features.telemetry.store import rule_states
from edge.ports.sample_lines import Sample
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
    parts = await rule_states.load_window(store, ("dev", "wrench.temp"))
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
    (kept,) = (await load_memory(store, rules, 5000)).evaluator.states.values()
    (expected,) = evaluator.states.values()
    assert isinstance(kept.detector, BaselineState)
    assert isinstance(expected.detector, BaselineState)
    count = window_length(expected.detector)
    assert latest_of(kept.detector, count) == latest_of(expected.detector, count)
    assert len(await rule_states.load_window(store, ("dev", "t"))) < 400


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
    assert await rule_states.load_window(store, ("dev", "t")) == []
    assert (await rule_states.load(store)).states == {}


async def test_unreadable_state_is_reset(store: Store) -> None:
    rules = rules_of(HOT)
    first = await load_memory(store, rules, 0)
    list(first.evaluator.feed(Sample(0, "wrench.temp", 90)))
    await store.commit(first.plan_commit(store.keys, first.facts))
    await store.execute("HSET", store.keys.telemetry_state(), '["hot","wrench.temp"]', "{")
    assert (await load_memory(store, rules, 0)).evaluator.states == {}
    await store.execute("HSET", store.keys.telemetry_state(), "facts", "{")
    assert (await load_memory(store, rules, 0)).facts.at == 0
