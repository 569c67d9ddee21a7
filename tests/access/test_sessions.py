"""Open sessions are listed in the store, and are closed when the store marks them as ended."""

from datetime import UTC, datetime

from edge.access.sessions import LIFETIME_MS, LiveSession, SessionList, request_end, show_sessions
from edge.model.user import Session
from edge.store import logins
from edge.store.client import Store
from tests.conftest import WaitUntil

NOW = datetime(2027, 1, 15, 8, tzinfo=UTC)


class Server:
    """A server with sessions of its own."""

    def __init__(self) -> None:
        self.live: dict[str, LiveSession] = {}

    def open(self, id: str, user: str = "anna") -> None:
        async def end() -> None:
            del self.live[id]

        session = Session(user=user, role="operator", way="opcua", instance="gw-1", since=1, address="192.0.2.7")
        self.live[id] = LiveSession(id, session, NOW, end)

    def open_sessions(self) -> list[LiveSession]:
        return list(self.live.values())


async def test_open_sessions_are_stored_and_closed_ones_removed(store: Store) -> None:
    server = Server()
    session_list = SessionList(store, server.open_sessions)
    server.open("s1")
    server.open("s2", "ben")
    await session_list.look()
    assert {id: session.user for id, (session, _) in (await logins.load_all_sessions(store)).items()} == {
        "s1": "anna",
        "s2": "ben",
    }
    assert await logins.load_last_activity(store) == dict.fromkeys(("s1", "s2"), "2027-01-15T08:00:00.000Z")
    assert 0 < await store.execute("PTTL", store.keys.session("s1")) <= LIFETIME_MS
    del server.live["s1"]
    await session_list.look()
    assert list(await logins.load_all_sessions(store)) == ["s2"]
    await session_list.close()
    assert await logins.load_all_sessions(store) == {}
    assert await logins.load_last_activity(store) == {}


async def test_session_marked_as_ended_is_closed_at_its_server(store: Store, wait_until: WaitUntil) -> None:
    server = Server()
    server.open("s1")
    server.open("s2")
    async with show_sessions(store, server.open_sessions):
        await wait_until(lambda: server.live)
        while len(await logins.load_all_sessions(store)) < len(server.live):
            pass
        assert await request_end(store, ["s1", "none"]) == ["s1"]
        await wait_until(lambda: list(server.live) == ["s2"])


async def test_sessions_lost_by_the_store_are_written_again(store: Store) -> None:
    server = Server()
    server.open("s1")
    session_list = SessionList(store, server.open_sessions)
    await session_list.look()
    await store.execute("DEL", store.keys.session("s1"), store.keys.last_activity())
    await session_list.look()
    assert list(server.live) == list(await logins.load_all_sessions(store)) == ["s1"]


async def test_without_sessions_the_store_is_not_called() -> None:
    unreachable: Store = object()  # type: ignore[assignment]
    await SessionList(unreachable, list).look()


async def test_session_of_the_command_line_ends_at_once(store: Store) -> None:
    session = Session(user="anna", role="engineer", way="cli", instance="gw-1", since=1)
    await store.commit(logins.put_session(store.keys, "c1", session, 1000))
    await store.commit(logins.touch_session(store.keys, "c1", NOW))
    assert await request_end(store, ["c1"]) == ["c1"]
    assert await logins.load_all_sessions(store) == {}


async def test_unreadable_session_is_skipped(store: Store) -> None:
    await store.execute("SET", store.keys.session("s1"), "no JSON")
    await store.execute("HSET", store.keys.last_activity(), "s1", "2027-01-15T08:00:00Z")
    assert await logins.load_all_sessions(store) == {}
