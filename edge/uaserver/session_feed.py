"""Describes the activated OPC UA sessions for the list of all sessions of the gateway."""

from collections.abc import Iterable, Iterator

from edge.access.sessions import LiveSession
from edge.model.user import Session
from edge.opcua.access import Caller
from edge.opcua.server_session import ServerSession

_MOST_CHARACTERS = 200


def live_sessions(open_sessions: Iterable[ServerSession], instance: str) -> Iterator[LiveSession]:
    """Yield each activated session with its user, client and last request."""
    for server_session in open_sessions:
        if server_session.caller is not None and not server_session.is_closed():
            session = _session(server_session, server_session.caller, instance)
            yield LiveSession(
                server_session.record.id, session, server_session.record.last_contact, server_session.close_session
            )


def _session(session: ServerSession, caller: Caller, instance: str) -> Session:
    return Session(
        user=caller.name or "anonymous",
        role=caller.role.name.lower(),
        way="opcua",
        instance=instance,
        since=round(session.record.connected_at.timestamp() * 1000),
        address=caller.address,
        client=(caller.application or session.record.asked.SessionName or "")[:_MOST_CHARACTERS],
    )
