"""Each fault is counted once in every counter of its kind."""

import pytest
from asyncua import ua

from edge.opcua.diagnostics import summary
from edge.opcua.request_counts import ServerCounts


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
