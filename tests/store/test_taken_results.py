"""A tombstone recognizes the results of its job, and its size is bounded."""

from msgspec.structs import replace

from edge.sfc.run import ActionState, PastAttempt, Run, new_run
from edge.store import dedupe, taken_results
from edge.store.client import Store
from edge.store.taken_results import MOST_TAKEN

EMPTY = new_run("J1", "station-1", "R1", {})


def run_of(*results: object) -> Run:
    past = {
        number: PastAttempt("a", "A", number, ActionState.COMPLETED, result=result)
        for number, result in enumerate(results, 1)
    }
    return replace(EMPTY, past=past)


async def bury(store: Store, run: Run) -> None:
    await store.commit(dedupe.bury(store.keys, "J1", 17, 60_000, taken_results.digests_of(run)))


async def test_result_belongs_to_its_command(store: Store) -> None:
    await bury(store, run_of({"ok": True}, None))
    taken = [await taken_results.was_taken(store, "J1", f"J1/R1/a/{number}", {"ok": True}) for number in (1, 2)]
    assert taken == [True, False]
    assert not await taken_results.was_taken(store, "J1", "J1/R1/a/1", {"ok": False})
    assert not await taken_results.was_taken(store, "J2", "J1/R1/a/1", {"ok": True})


async def test_tombstone_holds_the_instant_and_a_bounded_number_of_results(store: Store) -> None:
    most = 2 * MOST_TAKEN
    await bury(store, run_of(*({"torque": number} for number in range(1, most + 1))))
    assert await store.fetch(dedupe.query_removal(store.keys, "J1")) == 17
    taken = await store.fetch(dedupe.query_taken(store.keys, "J1"))
    assert len(taken) == MOST_TAKEN
    newest = f"J1/R1/a/{most}"
    assert await taken_results.was_taken(store, "J1", newest, {"torque": most})


async def test_job_without_results_has_a_plain_tombstone(store: Store) -> None:
    await bury(store, EMPTY)
    assert await store.execute("GET", store.keys.joborder_tombstone("J1")) == "17"
