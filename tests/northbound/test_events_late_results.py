"""The event of a late result, and its publication."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

from msgspec.structs import replace

from edge.foundation.errors import Unavailable
from edge.foundation.task_group import background_task
from edge.links.mqtt import Message, MqttSession, to_event
from edge.model.job_message import LateResultEvent
from edge.northbound.events import LateResultPublisher, late_result_event
from edge.northbound.topics import Topics
from edge.store import dead_letters
from edge.store.client import Store
from edge.store.connection import Argument
from edge.store.dead_letters import Letter, LetterKind


def _letter(data: str) -> Letter:
    details = {"command_id": "J1/R/a/1", "source": "/wrench", "data": data}
    return Letter(LetterKind.LATE, "station-1", "J1", "the job is gone", 1, details)


def test_event_names_command_and_result() -> None:
    event = late_result_event("urn:edge", "5-0", _letter('{"torque":85}'))
    assert (event.id, event.causationid) == ("station-1/late/5-0", "J1/R/a/1")
    assert event.data == LateResultEvent(
        job_order_id="J1", command_id="J1/R/a/1", source="/wrench", reason="the job is gone", data={"torque": 85}
    )


def test_truncated_result_is_published_as_text() -> None:
    event = late_result_event("urn:edge", "5-0", _letter('{"torque":8'))
    assert isinstance(event.data, LateResultEvent)
    assert event.data.data == '{"torque":8'


class Session:
    """Keeps the ids of the events that are published; each is refused as often as `refused` says."""

    def __init__(self, refused: int = 0) -> None:
        self.sent: asyncio.Queue[str] = asyncio.Queue()
        self.refused = refused

    async def send(self, message: Message) -> None:
        if self.refused:
            self.refused -= 1
            raise Unavailable("the broker is away")
        self.sent.put_nowait(to_event(message).id)


def _publisher(store: Store, session: Session) -> LateResultPublisher:
    return LateResultPublisher(store, cast(MqttSession, session), "urn:edge", Topics("app/jobs", "station-1"), 0.01)


async def _kept(store: Store, letter: Letter) -> str:
    await store.commit(dead_letters.add(store.keys, letter, 60_000))
    return dead_letters.event_id(*list((await dead_letters.load_all(store)).items())[-1])


async def test_late_results_are_published_once_also_after_an_outage(store: Store) -> None:
    session = Session(refused=2)
    publisher = _publisher(store, session)
    await store.commit(dead_letters.add(store.keys, replace(_letter("1"), kind=LetterKind.COMMAND), 60_000))
    first = await _kept(store, _letter("2"))
    async with background_task(publisher.run(), "late results"), asyncio.timeout(60):
        assert await session.sent.get() == first
        await store.commit(dead_letters.add(store.keys, replace(_letter("3"), scope="station-2"), 60_000))
        second = await _kept(store, _letter("4"))
        assert await session.sent.get() == second
    # Meanwhile another instance publishes.
    other = Session()
    third = await _kept(store, _letter("5"))
    async with background_task(_publisher(store, other).run(), "late results"), asyncio.timeout(60):
        assert await other.sent.get() == third
        while (await dead_letters.last_published(store, "station-1")).results not in third:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.01)
    fourth = await _kept(store, _letter("6"))
    async with background_task(publisher.run(), "late results"), asyncio.timeout(60):
        assert await session.sent.get() == fourth


async def test_letters_of_other_kinds_are_read_once(store: Store) -> None:
    """A gateway with many dead letters decoded all of them every two seconds, as none of them was a late result."""
    starts: list[str] = []
    of_command = replace(_letter("1"), kind=LetterKind.COMMAND)
    newest = (await _kept(store, of_command)).rpartition("/")[2]

    async def watched(commands: Sequence[Sequence[Argument]]) -> object:
        starts.extend(str(command[2]) for command in commands if command[1] == store.keys.sfc_dead_letters())
        return await store.read(commands)

    watching = cast(Store, SimpleNamespace(keys=store.keys, execute=store.execute, read=watched, commit=store.commit))
    publisher = _publisher(watching, Session())
    async with background_task(publisher.run(), "late results"), asyncio.timeout(60):
        while len(starts) < 3:  # noqa: ASYNC110 - the store has no event
            await asyncio.sleep(0.01)
    assert set(starts) == {"-", f"({newest}"}
    assert starts.count("-") == 1


async def test_late_result_of_an_earlier_release_is_published_before_later_ones(store: Store) -> None:
    """It is among the letters of jobs: such a release had no stream for late results."""
    await store.commit(dead_letters.add(store.keys, replace(_letter("1"), kind=LetterKind.COMMAND), 60_000))
    (entry,) = await store.execute("XRANGE", store.keys.sfc_dead_letters(), "-", "+")
    fields = [part for pair in (entry[1] | {"kind": "late"}).items() for part in pair]
    earlier = await store.execute("XADD", store.keys.sfc_dead_letters(), "*", *fields)
    later = await _kept(store, _letter("2"))
    session = Session()
    async with background_task(_publisher(store, session).run(), "late results"), asyncio.timeout(60):
        assert await session.sent.get() == f"station-1/late/{earlier}"
        assert await session.sent.get() == later
