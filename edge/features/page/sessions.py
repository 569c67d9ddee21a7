"""Logins of people in a browser: each a random key in a cookie, bounded in number and time."""

import functools
import hashlib
import secrets
from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from edge.access.sessions import LiveSession
from edge.foundation.instant import Clock
from edge.foundation.rate_limit import RateLimit
from edge.model.instant import utc
from edge.model.user import Role, Session

MOST_SESSIONS = 64
MOST_OF_USER = 8
MOST_REQUESTS = 300
_RATE_S = 5.0
_MOST_CHARACTERS = 200


class WebSession(Struct, frozen=True):
    """A login in a browser; `id` is shown in lists, the key of the cookie is not kept. Instants in milliseconds."""

    id: str
    user: str
    role: Role
    address: str
    client: str
    since: int
    last_activity: int
    rate: RateLimit
    idle_ms: int


class WebSessions:
    """The open logins of this gateway. They end with it: a person logs in again after a restart."""

    def __init__(
        self,
        clock: Clock,
        idle_s: int,
        longest_s: int,
        role_of: Callable[[str], Role | None],
        most: int = MOST_SESSIONS,
        most_of_user: int = MOST_OF_USER,
        most_requests: int = MOST_REQUESTS,
    ) -> None:
        """End a session after `idle_s` seconds without activity, and `longest_s` after its login.

        A session may send `most_requests` in five seconds. `role_of` returns the present role of a user, None for one
        who was removed: the session ends then.
        """
        self._clock = clock
        self._idle_s = idle_s
        self._longest_ms = longest_s * 1000
        self._role_of = role_of
        self._most = most
        self._most_of_user = most_of_user
        self._most_requests = most_requests
        self._open: dict[str, WebSession] = {}

    def open(self, user: str, role: Role, address: str, client: str, idle_s: int | None = None) -> str:
        """Open a session and return its key; the least active session ends when there would be too many.

        `idle_s` is the time of this session without activity, where it differs from that of others.
        """
        self._expire()
        of_user = [web_session for web_session in self._open.values() if web_session.user == user]
        if len(of_user) >= self._most_of_user:
            self.end(min(of_user, key=lambda web_session: web_session.last_activity).id)
        elif len(self._open) >= self._most:
            self.end(min(self._open.values(), key=lambda web_session: web_session.last_activity).id)
        key, now = secrets.token_urlsafe(32), self._clock()
        id = _id_of(key)
        rate = RateLimit(self._most_requests, _RATE_S)
        idle_ms = (idle_s or self._idle_s) * 1000
        self._open[id] = WebSession(id, user, role, address, client[:_MOST_CHARACTERS], now, now, rate, idle_ms)
        return key

    def find(self, key: str, *, is_activity: bool = True) -> WebSession | None:
        """Return the session of a key, with the present role of its user; None when it has ended."""
        web_session = self.alive(_id_of(key))
        if web_session is not None and is_activity:
            web_session = self._open[web_session.id] = replace(web_session, last_activity=self._clock())
        return web_session

    def alive(self, id: str) -> WebSession | None:
        """Return the session of an id; end it when its time is over or its user was removed."""
        web_session = self._open.get(id)
        if web_session is None:
            return None
        role = self._role_of(web_session.user)
        if role is None or self._is_over(web_session):
            self.end(id)
            return None
        if role is not web_session.role:
            web_session = self._open[id] = replace(web_session, role=role)
        return web_session

    def end(self, id: str) -> None:
        """End a session."""
        self._open.pop(id, None)

    def end_key(self, key: str) -> None:
        """End the session of a key; an unknown one has no effect."""
        self.end(_id_of(key))

    async def close(self, id: str) -> None:
        """End a session that `edge sessions end` names."""
        self.end(id)

    def live_sessions(self, instance: str) -> Iterator[LiveSession]:
        """Yield each open session for the list of sessions of a gateway."""
        self._expire()
        for session in tuple(self._open.values()):
            shown = Session(
                user=session.user,
                role=session.role.name.lower(),
                way="web",
                instance=instance,
                since=session.since,
                address=session.address,
                client=session.client,
            )
            at = utc(session.last_activity)
            yield LiveSession(session.id, shown, at, functools.partial(self.close, session.id))

    def _expire(self) -> None:
        for item in tuple(self._open.values()):
            if self._is_over(item):
                self.end(item.id)

    def _is_over(self, session: WebSession) -> bool:
        now = self._clock()
        return now - session.last_activity > session.idle_ms or now - session.since > self._longest_ms


def _id_of(key: str) -> str:
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()[:32]
