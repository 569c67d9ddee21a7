"""Shows the sessions of this gateway in the store, and ends those that `edge sessions end` names."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from datetime import datetime

import msgspec
import structlog
from msgspec import Struct

from edge.foundation.errors import Defect, Unavailable
from edge.foundation.task_group import background_task
from edge.model.user import Session
from edge.store import logins
from edge.store.background import poll_store
from edge.store.client import Store
from edge.store.commit import Commit, join

logger = structlog.get_logger(__name__)

LIFETIME_MS = 60_000
LOOK_EVERY_S = 2.0
_LOOKS_PER_RENEWAL = 10
_STOP_WITHIN_S = 2.0


class LiveSession(Struct, frozen=True):
    """A session that is open now: `end` closes it."""

    id: str
    session: Session
    last_activity: datetime
    end: Callable[[], Awaitable[None]]


def session_id(key: str) -> str:
    """Return the id of a session of the command line: the list shows ids, and one must not be enough to use it."""
    return hashlib.sha256(key.encode()).hexdigest()[:16]


class SessionList:
    """Writes the open sessions to the store every few seconds. Without sessions it does not call the store."""

    def __init__(self, store: Store, open_sessions: Callable[[], Iterable[LiveSession]]) -> None:
        self._store = store
        self._open_sessions = open_sessions
        self._shown: dict[str, LiveSession] = {}
        self._looks = 0

    async def run(self) -> None:
        """Write changes until cancelled; retry while the store is unavailable."""
        await poll_store(self._store.defects, "sessions", self.look, LOOK_EVERY_S)

    async def look(self) -> None:
        """End the sessions that are to end, and write what has changed since the last look."""
        live = {session.id: session for session in self._open_sessions()}
        if not live and not self._shown:
            return
        sessions = await logins.load_sessions(self._store, list(live))
        for id in [id for id, session in sessions.items() if session.ended]:
            ended = live.pop(id)
            await ended.end()
            logger.info("session ended", session=id, user=ended.session.user, address=ended.session.address)
        self._looks += 1
        await self._write(live, sessions.keys())

    async def close(self) -> None:
        """Remove the sessions of this gateway from the store. Raises Unavailable."""
        if self._shown:
            await self._store.commit(logins.remove_sessions(self._store.keys, self._shown))
            self._shown = {}

    async def _write(self, live: dict[str, LiveSession], stored: Iterable[str]) -> None:
        known = set(stored)
        parts = [self._part(live_session, is_stored=live_session.id in known) for live_session in live.values()]
        parts.append(logins.remove_sessions(self._store.keys, self._shown.keys() - live.keys()))
        if (commit := join(parts)).operations:
            await self._store.commit(commit)
        self._shown = live

    def _part(self, live_session: LiveSession, *, is_stored: bool) -> Commit:
        keys, before = self._store.keys, self._shown.get(live_session.id)
        if before is None or before.session != live_session.session or not is_stored:
            commit = logins.put_session(keys, live_session.id, live_session.session, LIFETIME_MS)
            return join((commit, logins.touch_session(keys, live_session.id, live_session.last_activity)))
        if self._looks % _LOOKS_PER_RENEWAL:
            return Commit()
        return join(
            (
                logins.renew_session(keys, live_session.id, LIFETIME_MS),
                logins.touch_session(keys, live_session.id, live_session.last_activity),
            )
        )


@asynccontextmanager
async def show_sessions(store: Store, open_sessions: Callable[[], Iterable[LiveSession]]) -> AsyncIterator[None]:
    """Show the sessions of a gateway in the store for the length of the block."""
    session_list = SessionList(store, open_sessions)
    try:
        async with background_task(session_list.run(), "sessions"):
            yield
    finally:
        with suppress(Unavailable, Defect, TimeoutError):
            async with asyncio.timeout(_STOP_WITHIN_S):
                await session_list.close()


async def request_end(store: Store, ids: Iterable[str]) -> list[str]:
    """Request the end of sessions; return the ids of those that are stored.

    A session of the command line ends at once; the gateway of the others closes them within seconds.
    """
    sessions = await logins.load_sessions(store, list(ids))
    ended = [
        logins.remove_sessions(store.keys, [id])
        if session.way == "cli"
        else logins.put_session(store.keys, id, msgspec.structs.replace(session, ended=True), LIFETIME_MS)
        for id, session in sessions.items()
    ]
    if ended:
        await store.commit(join(ended))
    return list(sessions)
