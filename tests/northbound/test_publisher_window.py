"""Several changes are in flight; the position advances over those that the broker has confirmed, in their order."""

import asyncio

import pytest

from edge.foundation.errors import Unavailable
from edge.foundation.instant import now_ms
from edge.links.mqtt import Message
from edge.links.mqtt_confirmations import UnconfirmedPublish
from edge.model.event_types import STATUS_EVENT_TYPE
from edge.model.job_state import is_transition
from edge.northbound import publisher
from edge.northbound.events import StatusEventPublisher
from edge.northbound.publisher import MOST_CHANGES, ChangeWindow
from edge.northbound.retained_topics import RetainedTopics
from edge.northbound.topics import Topics, TopicWriter
from edge.station.retention import Deliveries, RetentionPolicy
from edge.store import changes
from edge.store.changes import Change
from edge.store.client import Store
from edge.store.reads import BEGINNING
from tests.northbound.calling import SCOPE
from tests.northbound.test_publisher import Bench, bench
from tests.station.plant import until_true

__all__ = ["bench"]

NOT_AUTHORIZED = 0x87
TOPICS = Topics("app/jobs", SCOPE)


class HeldBroker:
    """A session whose PUBACKs the test sends; `sent` are the messages in the order in which they left."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.connection = 1
        self._pubacks: list[asyncio.Future[int]] = []

    async def start(self, message: Message) -> UnconfirmedPublish:
        self.sent.append(message)
        self._pubacks.append(asyncio.get_running_loop().create_future())
        return UnconfirmedPublish(self._pubacks[-1], "the broker", message.topic)

    def require_connection(self, connection: int) -> None:
        if connection != self.connection:
            raise Unavailable("another connection")

    @property
    def orders(self) -> int:
        """Return how many topics of orders were sent: each change sends one, as its last message."""
        return sum("/order/" in message.topic for message in self.sent)

    @property
    def events(self) -> list[int]:
        """Return the places of the status events among what was sent."""
        return [place for place, message in enumerate(self.sent) if message.topic == TOPICS.events]

    @property
    def unconfirmed(self) -> list[int]:
        """Return the places of the messages without PUBACK."""
        return [place for place, puback in enumerate(self._pubacks) if not puback.done()]

    def confirm(self, places: range | list[int], reason: int = 0) -> None:
        """Send the PUBACKs of messages."""
        for place in places:
            self._pubacks[place].set_result(reason)

    def lose(self) -> None:
        """Lose the connection: what is not confirmed fails."""
        for future in self._pubacks:
            if not future.done():
                future.set_exception(Unavailable("the broker is gone"))


class Line:
    """A window over the changes of a store, and the changes that it reported as published."""

    def __init__(self, store: Store) -> None:
        self.store, self.broker, self.published = store, HeldBroker(), list[Change]()
        writer = TopicWriter(self.broker, TOPICS, 1.0, 1.0)  # type: ignore[arg-type]
        self.events = StatusEventPublisher(store, self.broker, writer, "urn:edge", TOPICS)  # type: ignore[arg-type]
        deliveries = Deliveries(store, now_ms, RetentionPolicy(0))
        retained = RetainedTopics(store, writer, "urn:edge", TOPICS, 3600, deliveries)
        self.window = ChangeWindow(store, self.broker, self.events, retained, deliveries)  # type: ignore[arg-type]

    async def waiting(self) -> list[Change]:
        newest = (await changes.latest(self.store, [SCOPE]))[SCOPE]
        return [change async for change in changes.read_between(self.store, SCOPE, BEGINNING, newest)]

    async def publish(self) -> int:
        return await self.window.publish(await self.waiting(), 1, self.published.append)

    async def positions(self) -> tuple[str, str]:
        """Return how far changes and how far events were published."""
        return (await changes.cursors(self.store, [SCOPE]))[SCOPE], await changes.event_cursor(self.store, SCOPE)


@pytest.fixture
async def line(bench: Bench) -> Line:
    for number in range(MOST_CHANGES):
        await bench.store_and_abort(f"J{number}")
    return Line(bench.station.store)


async def all_sent(line: Line, count: int = MOST_CHANGES) -> list[Change]:
    """Wait until so many changes are on their way, each with the topic of its order; return those with an event."""
    before = line.broker.orders
    await until_true(lambda: line.broker.orders - before == count)
    return [change for change in await line.waiting() if is_transition(change.cause)]


async def test_changes_leave_in_order_before_the_first_is_confirmed(line: Line) -> None:
    waiting = await line.waiting()
    task = asyncio.create_task(line.publish())
    transitions = await all_sent(line)
    ids = [line.broker.sent[place].user_properties["id"] for place in line.broker.events]
    assert ids == [f"{SCOPE}/{transition.position}" for transition in transitions][: len(ids)]
    assert len(ids) >= MOST_CHANGES // 2
    assert {line.broker.sent[place].user_properties["type"] for place in line.broker.events} == {STATUS_EVENT_TYPE}
    assert await line.positions() == (BEGINNING, BEGINNING)
    line.broker.confirm(range(len(line.broker.sent)))
    assert await task == MOST_CHANGES
    assert line.published == waiting[:MOST_CHANGES]


async def test_lost_connection_saves_the_confirmed_prefix_only(line: Line) -> None:
    """The third event is not confirmed: what is behind it is published again, though the broker has it."""
    waiting = await line.waiting()
    task = asyncio.create_task(line.publish())
    transitions = await all_sent(line)
    third = line.broker.events[2]
    before = waiting.index(transitions[2])
    line.broker.confirm([number for number in range(len(line.broker.sent)) if number != third])
    line.broker.lose()
    with pytest.raises(Unavailable):
        await task
    assert line.published == waiting[:before]
    assert await line.positions() == (waiting[before - 1].position,) * 2


async def test_events_behind_a_refused_one_wait_though_the_broker_took_them(line: Line) -> None:
    waiting = await line.waiting()
    task = asyncio.create_task(line.publish())
    transitions = await all_sent(line)
    before = waiting.index(transitions[2])
    line.broker.confirm([line.broker.events[2]], NOT_AUTHORIZED)
    line.broker.confirm([number for number in range(len(line.broker.sent)) if number != line.broker.events[2]])
    assert await task == MOST_CHANGES
    assert line.events.is_blocked
    assert await line.positions() == (waiting[MOST_CHANGES - 1].position, waiting[before - 1].position)


async def test_changes_stay_when_the_connection_is_another_one(line: Line) -> None:
    line.broker.connection = 2
    with pytest.raises(Unavailable):
        await line.publish()
    assert line.broker.sent == []
    assert await line.positions() == (BEGINNING, BEGINNING)


async def test_large_changes_have_a_smaller_window(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "MOST_BYTES", 2_000)
    for expected in (MOST_CHANGES, 2):
        task = asyncio.create_task(line.publish())
        await all_sent(line, expected)
        line.broker.confirm(line.broker.unconfirmed)
        assert await task == expected
