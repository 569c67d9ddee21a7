"""Requests are counted by session and service."""

from asyncua import ua

from edge.opcua.request_counts import SERVICE_NAMES, SessionRecord

READ = ua.NodeId(ua.ObjectIds.ReadRequest_Encoding_DefaultBinary)


def test_a_session_counts_its_requests_by_service() -> None:
    record = SessionRecord()
    record.count(READ)
    record.count(READ, ua.StatusCodes.BadNothingToDo)
    assert (record.total["Read"], record.errors["Read"], record.unauthorized) == (2, 1, 0)
    assert SERVICE_NAMES[READ] == "Read"
