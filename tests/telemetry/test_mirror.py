"""A mirror follows its set; removed members are occurrences, also after a restart and an outage."""

import functools

import pytest

from edge.errors import Unavailable
from edge.links.background_task import background_task
from edge.rules.sample_lines import Occurrence
from edge.store import mirrors
from edge.store.client import Store
from edge.store.mirrors import Freshness
from edge.store.stream import entries
from edge.telemetry.batch import decode_batch
from edge.telemetry.interest import RuleInterest
from edge.telemetry.mirror import SetMirror
from tests.station.plant import until, until_true
from tests.telemetry.plant import TelemetryClock, rules_of

LEFT = {"id": "left", "kind": "occurs", "pattern": "carriers.*", "severity": 700}


class LineController:
    """The set of another system, which may be away."""

    def __init__(self) -> None:
        self.members: frozenset[str] | None = frozenset()

    async def read(self) -> frozenset[str]:
        if self.members is None:
            raise Unavailable("away")
        return self.members


def mirror_of(store: Store, line: LineController) -> SetMirror:
    jobs = {"C1": "J1"}
    return SetMirror(store, "carriers", line.read, TelemetryClock(), RuleInterest(rules_of(LEFT)), jobs.get)


async def occurrences(store: Store) -> list[tuple[str, str | None, str]]:
    raw = await store.execute("XRANGE", store.keys.telemetry(), "-", "+")
    lines = [line for each in entries(raw) for line in decode_batch(each.fields)[0].lines]
    return [(each.name, each.job, each.data["member"]) for each in lines if isinstance(each, Occurrence)]


async def test_members_that_join_and_leave_are_occurrences_of_their_job(store: Store) -> None:
    line = LineController()
    for members in ({"C1", "C2"}, {"C1", "C2"}, {"C2"}, set()):
        line.members = frozenset(members)
        # A new mirror each time: what left during a restart is seen, too.
        await mirror_of(store, line).copy_once()
        assert await mirrors.load(store, "carriers") == members
    assert await occurrences(store) == [
        ("carriers.joined", "J1", "C1"),
        ("carriers.joined", None, "C2"),
        ("carriers.left", "J1", "C1"),
        ("carriers.left", None, "C2"),
    ]
    assert await store.execute("EXISTS", store.keys.mirror("carriers")) == 0


async def test_failed_read_keeps_the_last_good_copy(store: Store) -> None:
    line = LineController()
    line.members = frozenset({"C1"})
    mirror = mirror_of(store, line)
    await mirror.copy_once()
    line.members = None
    with pytest.raises(Unavailable):
        await mirror.copy_once()
    assert await mirrors.load(store, "carriers") == {"C1"}


async def state_of(store: Store) -> Freshness | None:
    state = (await mirrors.load_states(store, ("carriers",))).get("carriers")
    return state.freshness if state else None


async def test_state_separates_unread_current_and_stale_copies(store: Store) -> None:
    line = LineController()
    line.members = None
    mirror = mirror_of(store, line)
    async with background_task(mirror.run(0.01), "mirror"):
        await until_true(lambda: mirror.is_stale)
        # Not read since the start: an old copy is nothing to rely on.
        assert await state_of(store) is None
        for members, expected in ((set(), Freshness.CURRENT), (None, Freshness.STALE), ({"C1"}, Freshness.CURRENT)):
            line.members = None if members is None else frozenset(members)
            await until(functools.partial(is_in, store, expected))
        # A gateway that starts forgets the state; the one that reads the mirror confirms it.
        await store.commit(mirrors.forget_states(store.keys, ("carriers",)))
        await until(functools.partial(is_in, store, Freshness.CURRENT))
    assert await mirrors.load(store, "carriers") == {"C1"}


async def is_in(store: Store, expected: Freshness) -> bool:
    return await state_of(store) is expected
