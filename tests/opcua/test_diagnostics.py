"""Each fault is counted once in every counter of its kind."""

import pytest
from asyncua import ua

from edge.opcua.diagnostics import SERVICE_NAMES, ServerCounts, SessionRecord, summary

READ = ua.NodeId(ua.ObjectIds.ReadRequest_Encoding_DefaultBinary)


@pytest.mark.parametrize(
    ("code", "is_session", "expected"),
    [
        (ua.StatusCodes.BadTooManyOperations, False, (1, 0, 0, 0)),
        (ua.StatusCodes.BadUserAccessDenied, False, (1, 1, 0, 0)),
        (ua.StatusCodes.BadTooManySessions, True, (1, 0, 1, 0)),
        (ua.StatusCodes.BadIdentityTokenRejected, True, (1, 1, 1, 1)),
    ],
)
def test_a_fault_is_counted_by_its_kind(code: int, *, is_session: bool, expected: tuple[int, ...]) -> None:
    counts = ServerCounts()
    counts.count_fault(code, is_session=is_session)
    shown = summary(counts, 0, ())
    assert (
        shown.RejectedRequestsCount,
        shown.SecurityRejectedRequestsCount,
        shown.RejectedSessionCount,
        shown.SecurityRejectedSessionCount,
    ) == expected


def test_a_session_counts_its_requests_by_service() -> None:
    record = SessionRecord()
    record.count(READ)
    record.count(READ, ua.StatusCodes.BadNothingToDo)
    assert (record.total["Read"], record.errors["Read"], record.unauthorized) == (2, 1, 0)
    assert SERVICE_NAMES[READ] == "Read"
