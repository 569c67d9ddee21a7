"""The public form of a session names its gateway, and its instants as RFC 3339."""

from edge.model.user import PublicSession, Session, public_session


def test_public_session_has_every_member() -> None:
    session = Session(user="anna", role="engineer", way="cli", instance="gw-1", since=0)
    assert public_session("4f", session, "2026-01-02T00:00:00.000Z") == PublicSession(
        id="4f",
        user="anna",
        role="engineer",
        way="cli",
        gateway="gw-1",
        address="",
        client="",
        since="1970-01-01T00:00:00.000Z",
        last_activity="2026-01-02T00:00:00.000Z",
    )
