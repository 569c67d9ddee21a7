"""The text of a connection, for people: the kind of the reason, then the reason."""

import pytest

from edge.model.equipment_connection import ConnectionFault, ConnectionState

SILENT = ConnectionState(connected=False, fault=ConnectionFault.NO_HOST, reason="Name or service not known")


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (ConnectionState(), ""),
        (ConnectionState(connected=True, since=5), ""),
        (ConnectionState(connected=False), "not connected"),
        (SILENT, "not connected: no host: Name or service not known"),
    ],
)
def test_text_has_the_kind_and_the_reason_of_a_missing_connection(state: ConnectionState, text: str) -> None:
    assert str(state.text) == text
