"""Logins end after a timeout, by logout, by an administrator, and beyond the limit of sessions."""

from edge.features.page.sessions import WebSessions
from edge.model.user import Role


class Hours:
    """A clock that a test sets, in milliseconds."""

    now = 0

    def __call__(self) -> int:
        return self.now


def sessions_of(clock: Hours, roles: dict[str, Role] | None = None) -> WebSessions:
    known = {"eve": Role.OBSERVER, "max": Role.ENGINEER} if roles is None else roles
    return WebSessions(clock, idle_s=900, longest_s=3600, role_of=known.get, most=3, most_of_user=2)


def test_idle_session_ends_and_activity_prolongs_it() -> None:
    clock = Hours()
    sessions = sessions_of(clock)
    key = sessions.open("eve", Role.OBSERVER, "a", "c")
    clock.now = 800_000
    assert sessions.find(key)
    clock.now = 1_600_000
    assert sessions.find(key, is_activity=False)
    clock.now = 1_701_000
    assert sessions.find(key) is None


def test_session_ends_after_its_maximum_lifetime() -> None:
    clock = Hours()
    sessions = sessions_of(clock)
    key = sessions.open("eve", Role.OBSERVER, "a", "c")
    for clock.now in range(0, 3_600_000, 600_000):
        assert sessions.find(key)
    clock.now = 3_601_000
    assert sessions.find(key) is None


def test_least_active_session_of_a_user_is_closed_first() -> None:
    clock = Hours()
    sessions = sessions_of(clock)
    first, second = (sessions.open("eve", Role.OBSERVER, "a", "c") for _ in range(2))
    clock.now = 10
    sessions.find(first)
    third = sessions.open("eve", Role.OBSERVER, "a", "c")
    assert [bool(sessions.find(key)) for key in (first, second, third)] == [True, False, True]
    sessions.open("max", Role.ENGINEER, "a", "c")
    sessions.open("max", Role.ENGINEER, "a", "c")
    assert len(list(sessions.live_sessions("edge"))) == 3


def test_role_follows_the_user_file() -> None:
    roles = {"eve": Role.ENGINEER}
    sessions = sessions_of(Hours(), roles)
    key = sessions.open("eve", Role.ENGINEER, "a", "c")
    roles["eve"] = Role.OBSERVER
    web_session = sessions.find(key)
    assert web_session
    assert web_session.role is Role.OBSERVER
    roles.clear()
    assert sessions.find(key) is None


async def test_listed_session_can_be_ended_and_shows_no_key() -> None:
    sessions = sessions_of(Hours())
    key = sessions.open("eve", Role.OBSERVER, "192.0.2.1", "browser")
    (live,) = sessions.live_sessions("edge")
    assert (live.session.user, live.session.way, live.session.address) == ("eve", "web", "192.0.2.1")
    assert key not in live.id
    await live.end()
    assert sessions.find(key) is None
