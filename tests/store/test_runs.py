"""A run is stored in small fields, and a decision writes only the changed ones."""

import base64
import zlib

import msgspec
import pytest

from edge.sfc.advance import advance
from edge.sfc.compiler import compile_recipe
from edge.sfc.history import StoredDecision
from edge.sfc.net import Net
from edge.sfc.run import Run, new_run
from edge.sfc.signal import Advanced, Answer, Event, Phase, Signal, Start
from edge.store import runs
from edge.store.client import Store
from edge.store.commit import Committed, Stale
from edge.store.runs import NO_CONSUMER, Outbox, Outgoing, StoredRun

NOW = 1_700_000_000_000
SCOPE = "station-1"


def net(count: int = 3, interaction: str = "push_command") -> Net:
    names = [f"s{number}" for number in range(count)]
    compiled = compile_recipe(
        {
            "steps": [{"name": name, "initial": name == "s0"} for name in names],
            "transitions": [
                {"source": names[n], "target": names[n + 1], "condition": "true"} for n in range(count - 1)
            ],
            "actions": [
                {"name": f"do {n}", "step": n, "qualifier": "N", "interaction": interaction, "type_id": "t.v1"}
                for n in names
            ],
        }
    )
    assert isinstance(compiled, Net)
    return compiled


def after(chart: Net, run: Run, signal: Signal, now: int = NOW) -> Run:
    advanced = advance(chart, run, signal, now)
    assert isinstance(advanced, Advanced)
    return advanced.run


def started(chart: Net, job_id: str = "J1", now: int = NOW) -> StoredRun:
    return StoredRun(after(chart, new_run(job_id, SCOPE, "r", {"torque": 1}), Start(), now), now, chart.source)


def moved(stored: StoredRun, run: Run, outbox: Outbox = ()) -> StoredRun:
    return StoredRun(run, stored.revision + 1, stored.recipe, outbox)


async def test_a_run_is_read_back_with_its_recipe(store: Store) -> None:
    stored_run = started(net())
    await store.commit(runs.create(store.keys, stored_run, store.consumer))
    loaded = await runs.load(store, "J1")
    assert loaded
    assert (loaded.revision, loaded.recipe) == (NOW, net().source)
    assert (loaded.run.steps, loaded.run.associations) == (stored_run.run.steps, stored_run.run.associations)
    assert await store.execute("SMEMBERS", store.keys.sfc_active_jobs()) == {"J1"}


async def test_absent_run_is_read_as_none(store: Store) -> None:
    assert await runs.load(store, "J1") is None


async def test_started_run_replaces_an_earlier_one_completely(store: Store) -> None:
    await store.execute("HSET", store.keys.sfc_execution("J1"), "step:old", "{}", "rev", "9")
    await store.commit(runs.create(store.keys, started(net()), store.consumer))
    loaded = await runs.load(store, "J1")
    assert loaded
    assert "old" not in loaded.run.steps


async def test_decision_writes_only_its_changes(store: Store) -> None:
    stored_run = started(net(200))
    await store.commit(runs.create(store.keys, stored_run, store.consumer))
    changed = after(net(200), stored_run.run, Answer("J1/r/do%20s0/1", ok=True, data={"value": 1}))
    commit = runs.update(store.keys, stored_run, moved(stored_run, changed), store.consumer)
    assert sum(len(str(part)) for operation in commit.operations for part in operation[1:]) < 400
    assert await store.commit(commit) == Committed()
    loaded = await runs.load(store, "J1")
    assert loaded
    assert loaded.revision == NOW + 1
    assert (loaded.run.steps, loaded.run.associations) == (changed.steps, changed.associations)
    assert loaded.run.variables == {"value": 1}


async def test_concurrently_changed_run_is_not_written(store: Store) -> None:
    stored_run = started(net())
    await store.commit(runs.create(store.keys, stored_run, store.consumer))
    changed = after(net(), stored_run.run, Answer("J1/r/do%20s0/1", ok=True))
    assert (
        await store.commit(runs.update(store.keys, stored_run, moved(stored_run, changed), store.consumer))
        == Committed()
    )
    assert await store.commit(runs.update(store.keys, stored_run, moved(stored_run, changed), store.consumer)) == Stale(
        store.keys.sfc_execution("J1")
    )


async def test_longest_waiting_job_is_found_and_leaves_the_index(store: Store) -> None:
    chart = net(1, "pull_event")
    waiting = {job_id: started(chart, job_id, now) for job_id, now in (("J2", NOW), ("J1", NOW + 1), ("J3", NOW + 2))}
    for stored_run in waiting.values():
        await store.commit(runs.create(store.keys, stored_run, store.consumer))
    assert await runs.longest_waiting(store, SCOPE, "t.v1") == "J2"
    assert await runs.longest_waiting(store, "station-2", "t.v1") is None
    done = after(chart, waiting["J2"].run, Event("t.v1", None, id="e", named=False))
    await store.commit(runs.update(store.keys, waiting["J2"], moved(waiting["J2"], done), store.consumer))
    assert await runs.longest_waiting(store, SCOPE, "t.v1") == "J1"


async def test_timers_are_read_in_the_order_of_their_deadlines(store: Store) -> None:
    for job_id, due in (("late", NOW + 9), ("soon", NOW), ("next", NOW + 1)):
        await store.commit(runs.set_timer(store.keys, job_id, due))
    assert await runs.next_due(store) == NOW
    assert await runs.due(store, NOW - 1, 10) == []
    assert await runs.due(store, NOW + 1, 10) == ["soon", "next"]
    assert await runs.due(store, NOW + 100, 2) == ["soon", "next"]
    await store.commit(runs.set_timer(store.keys, "soon", None))
    assert await runs.next_due(store) == NOW + 1


async def test_next_due_time_without_timers_is_none(store: Store) -> None:
    assert await runs.next_due(store) is None


async def test_finished_job_is_not_active(store: Store) -> None:
    await store.commit(runs.create(store.keys, started(net()), store.consumer))
    await store.commit(runs.finish(store.keys, "J1"))
    assert await store.execute("SCARD", store.keys.sfc_active_jobs()) == 0


@pytest.mark.parametrize("count", [10, 500])
@pytest.mark.untraced
async def test_write_size_of_a_step_is_independent_of_recipe_length(store: Store, count: int) -> None:
    stored_run = started(net(count))
    changed = after(net(count), stored_run.run, Answer("J1/r/do%20s0/1", ok=True))
    commit = runs.update(store.keys, stored_run, moved(stored_run, changed), store.consumer)
    assert len(commit.operations) == 1
    assert len(commit.operations[0]) == 12


FIRST = Outgoing(Phase.START, "J1/r/do%20s0/1", "s0", "t.v1")
SECOND = Outgoing(Phase.STOP, "J1/r/größe/2", 'step "one"', "t.v1")


async def test_outbox_keeps_commands_until_they_are_sent(store: Store) -> None:
    stored_run = started(net())
    await store.commit(runs.create(store.keys, stored_run, store.consumer))
    after_one = moved(stored_run, stored_run.run, (FIRST, SECOND))
    await store.commit(runs.update(store.keys, stored_run, after_one, store.consumer))
    loaded = await runs.load(store, "J1")
    assert loaded
    assert loaded.outbox == (FIRST, SECOND)
    assert await store.commit(runs.remove_sent(store.keys, loaded, (SECOND,), store.consumer)) == Committed()
    assert await runs.load_outbox(store, "J1", store.consumer) == (SECOND,)
    assert await runs.jobs_with_outbox(store, store.consumer) == ["J1"]
    loaded = await runs.load(store, "J1")
    assert loaded
    assert await store.commit(runs.remove_sent(store.keys, loaded, (), store.consumer)) == Committed()
    assert await runs.jobs_with_outbox(store, store.consumer) == []


async def test_outbox_rewritten_by_a_decision_keeps_its_commands(store: Store) -> None:
    stored_run = started(net())
    await store.commit(runs.create(store.keys, moved(stored_run, stored_run.run, (FIRST,)), store.consumer))
    before = await runs.load(store, "J1")
    assert before
    await store.commit(runs.update(store.keys, before, moved(before, before.run, (SECOND,)), store.consumer))
    assert await store.commit(runs.remove_sent(store.keys, before, (), store.consumer)) == Stale(
        store.keys.sfc_execution("J1")
    )
    assert await runs.load_outbox(store, "J1", store.consumer) == (SECOND,)


async def test_an_outbox_is_taken_over_once(store: Store) -> None:
    stored_run = started(net())
    await store.commit(runs.create(store.keys, moved(stored_run, stored_run.run, (FIRST,)), NO_CONSUMER))
    run = await runs.load(store, "J1")
    assert run
    assert run.outbox == ()
    over = runs.take_over(store.keys, run, (FIRST,), store.consumer, NO_CONSUMER)
    assert await store.commit(over) == Committed()
    assert await store.commit(over) == Stale(store.keys.sfc_execution("J1"))
    assert await runs.load_outbox(store, "J1", NO_CONSUMER) == ()
    assert await runs.load_outbox(store, "J1", store.consumer) == (FIRST,)


async def test_each_change_of_an_active_run_raises_its_revision(store: Store) -> None:
    chart = net()
    before = {name: started(chart, name) for name in ("J1", "J2")}
    for run in before.values():
        await store.commit(runs.create(store.keys, run, "edge"))
    assert await runs.revisions(store) == {"J1": NOW, "J2": NOW}
    after_it = moved(before["J1"], before["J1"].run)
    await store.commit(runs.update(store.keys, before["J1"], after_it, "edge"))
    await store.commit(runs.finish(store.keys, "J2"))
    assert await runs.revisions(store) == {"J1": NOW + 1}
    await store.execute("DEL", store.keys.sfc_execution("J1"))
    assert await runs.revisions(store) == {}


async def test_revision_bump_makes_earlier_copies_of_a_run_stale(store: Store) -> None:
    stored_run = started(net())
    await store.commit(runs.create(store.keys, stored_run, store.consumer))
    assert await store.commit(runs.bump_revision(store.keys, stored_run)) == Committed()
    assert await store.commit(runs.bump_revision(store.keys, stored_run)) == Stale(store.keys.sfc_execution("J1"))


async def test_outbox_leaves_out_job_and_run_of_its_own_commands(store: Store) -> None:
    ours = Outgoing(Phase.START, "J1/r/do%20s0/1", "s0", "t.v1")
    again = Outgoing(Phase.RESET, "J1/r/do%20s0/1/reset", "s0", "t.v1", again=True)
    of_earlier_run = Outgoing(Phase.STOP, "J1/q/do%20s0/1", "s0", "t.v1")
    stored_run = msgspec.structs.replace(started(net()), outbox=(ours, again, of_earlier_run))
    await store.commit(runs.create(store.keys, stored_run, store.consumer))
    text = await store.execute("HGET", store.keys.sfc_execution("J1"), f"outbox:{store.consumer}")
    assert text.startswith('[["start","do%20s0/1","s0","t.v1"],["reset","do%20s0/1/reset","s0","t.v1",true]')
    assert await runs.load_outbox(store, "J1", store.consumer) == stored_run.outbox
    loaded = await runs.load(store, "J1")
    assert loaded
    assert loaded.outbox == stored_run.outbox


async def test_recipe_is_stored_compressed(store: Store) -> None:
    stored_run = started(net(200))
    await store.commit(runs.create(store.keys, stored_run, store.consumer))
    text = await store.execute("HGET", store.keys.sfc_execution("J1"), "recipe")
    assert len(text) < len(stored_run.recipe) / 8
    assert zlib.decompress(base64.b64decode(text)).decode() == stored_run.recipe


START = 1_700_000_000_000


def record(number: int) -> StoredDecision:
    return StoredDecision(number, START + number, "tick", '[[0,"c"],[]]')


async def test_records_are_read_in_their_order(store: Store) -> None:
    numbers = (1, 2, 7, 8, 40)
    for number in numbers:
        await store.commit(runs.append_decision(store.keys, "J1", record(number), START, 100))
    assert await runs.load_decisions(store, "J1", START) == [record(number) for number in numbers]
    assert await runs.load_decisions(store, "J2", START) == []


async def test_newest_records_are_read_without_the_others(store: Store) -> None:
    for number in range(1, 31):
        await store.commit(runs.append_decision(store.keys, "J1", record(number), START, 100))
    assert await runs.load_decisions(store, "J1", START, 3) == [record(number) for number in (28, 29, 30)]


@pytest.mark.parametrize("most", [1, 10, 50])
async def test_history_never_exceeds_its_bound_and_loses_its_oldest_records(store: Store, most: int) -> None:
    for number in range(1, 151):
        await store.commit(runs.append_decision(store.keys, "J1", record(number), START, most))
        kept = await store.execute("XLEN", store.keys.sfc_history("J1"))
        assert min(number, most) * 9 // 10 <= kept <= most
    stored_decisions = await runs.load_decisions(store, "J1", START)
    assert [stored_decision.number for stored_decision in stored_decisions] == list(
        range(151 - len(stored_decisions), 151)
    )


async def test_record_times_before_the_start_are_kept(store: Store) -> None:
    records = [
        StoredDecision(1, START, "start", '[[0,"c"],[]]'),
        StoredDecision(2, START - 3_600_000, "tick", '[[0,"c"],[]]'),
    ]
    for decision in records:
        await store.commit(runs.append_decision(store.keys, "J1", decision, START, 100))
    assert await runs.load_decisions(store, "J1", START) == records
