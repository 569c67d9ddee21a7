"""A mirror follows its set; removed members are occurrences, also after a restart and an outage."""

import functools
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from edge.config import RedisSettings
from edge.features.telemetry.interest import RuleInterest
from edge.features.telemetry.mirror import SetMirror, jobs_by_member
from edge.foundation.errors import Unavailable
from edge.foundation.task_group import background_task
from edge.ports.batch import decode_batch
from edge.ports.sample_lines import Occurrence
from edge.store import instance_leases
from edge.store import set_mirrors as mirrors
from edge.store.client import Store
from edge.store.open_store import open_store
from edge.store.reads import entries
from edge.store.set_mirrors import Freshness
from tests.features.telemetry.plant import TelemetryClock, rules_of
from tests.station.plant import until, until_true

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
    async def jobs() -> dict[str, str]:
        return {"C1": "J1"}

    return SetMirror(store, "carriers", line.read, TelemetryClock(), RuleInterest(rules_of(LEFT)), jobs)


async def occurrences(store: Store) -> list[tuple[str, str | None, str]]:
    raw = await store.execute("XRANGE", store.keys.telemetry(), "-", "+")
    lines = [line for entry in entries(raw) for line in decode_batch(entry.fields)[0].lines]
    return [(sample.name, sample.job, sample.data["member"]) for sample in lines if isinstance(sample, Occurrence)]


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


@pytest.mark.parametrize("members", [3_990, 10_000])
async def test_mirror_that_loses_thousands_of_members_is_copied_whole(store: Store, members: int) -> None:
    line = LineController()
    mirror = mirror_of(store, line)
    await mirror.copy_once()
    line.members = frozenset(f"A{number}" for number in range(members))
    await mirror.copy_once()
    line.members = frozenset(f"B{number}" for number in range(members))
    await mirror.copy_once()
    assert await mirrors.load(store, "carriers") == line.members
    raw = list(entries(await store.execute("XRANGE", store.keys.telemetry(), "-", "+")))
    marks = [(entry.fields["producer"], int(entry.fields["number"])) for entry in raw]
    assert len(set(marks)) == len(marks)
    assert [number for _, number in marks] == sorted(number for _, number in marks)
    assert len(await occurrences(store)) == 3 * members


@pytest_asyncio.fixture
async def gateways(redis: RedisSettings) -> AsyncIterator[tuple[Store, Store]]:
    """The store as two gateways use it."""
    async with open_store(redis, "first") as first, open_store(redis, "second") as second:
        yield first, second


async def test_gateway_that_can_read_a_mirror_continues_it(store: Store, gateways: tuple[Store, Store]) -> None:
    first, second = gateways
    for item in (first, second):
        await instance_leases.acquire(store, item.consumer, f"token of {item.consumer}")
    line_of_first, line_of_second = LineController(), LineController()
    line_of_first.members = line_of_second.members = frozenset({"C1"})
    set_mirror, other = mirror_of(first, line_of_first), mirror_of(second, line_of_second)
    async with background_task(set_mirror.run(0.01), "one"), background_task(other.run(0.01), "other"):
        await until(functools.partial(is_in, store, Freshness.CURRENT))
        for away, reads in ((line_of_first, second), (line_of_second, first)):
            away.members = None
            await until(functools.partial(is_read_by, store, reads.consumer))
            (line_of_second if away is line_of_first else line_of_first).members = frozenset({reads.consumer})
            await until(functools.partial(holds, store, reads.consumer))
            assert await state_of(store) is Freshness.CURRENT
            away.members = frozenset({reads.consumer})
        line_of_first.members = line_of_second.members = None
        await until(functools.partial(is_in, store, Freshness.STALE))
        assert await mirrors.load_reader(store, "carriers") == mirrors.MirrorReader()


async def test_mirror_of_a_working_gateway_is_left_to_it(store: Store, gateways: tuple[Store, Store]) -> None:
    first, second = gateways
    await instance_leases.acquire(store, "first", "token")
    line = LineController()
    await mirror_of(first, line).copy_once()
    line.members = frozenset({"C1"})
    await mirror_of(second, line).copy_once()
    assert await mirrors.load(store, "carriers") == frozenset()
    await instance_leases.release(store, "first", "token")
    await mirror_of(second, line).copy_once()
    assert await mirrors.load(store, "carriers") == {"C1"}


async def is_read_by(store: Store, consumer: str) -> bool:
    return (await mirrors.load_reader(store, "carriers")).instance == consumer


async def holds(store: Store, member: str) -> bool:
    return member in await mirrors.load(store, "carriers")


def test_member_belongs_to_the_first_job_that_names_it() -> None:
    assert jobs_by_member([("J1", ["C1", 7]), ("J2", ["C1", "C2"])]) == {
        "J1": "J1",
        "C1": "J1",
        "7": "J1",
        "J2": "J2",
        "C2": "J2",
    }
