"""The claim of a dead owner expires with its lease."""

import pytest

from edge.model.lock import LockClaim


@pytest.mark.parametrize(("until", "has_expired"), [(None, False), (6, False), (5, True), (4, True)])
def test_claim_expires_at_the_end_of_its_lease(until: int | None, *, has_expired: bool) -> None:
    assert LockClaim(owner="a", since=1, until=until).has_expired(5) is has_expired
