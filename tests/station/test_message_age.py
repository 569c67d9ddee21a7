"""A message that comes after its expiry is refused, with how late it is."""

import pytest

from edge.foundation.errors import Refused
from edge.station.message_age import UNKNOWN_AGE, refuse_expired


@pytest.mark.parametrize("expires_at", [None, 1_000, 1_001])
def test_message_within_its_expiry_is_accepted(expires_at: int | None) -> None:
    refuse_expired(expires_at, 1_000)


@pytest.mark.parametrize(
    ("expires_at", "kind", "reason"), [(990, "expired", "10 ms ago"), (UNKNOWN_AGE, "retained", "may be of any age")]
)
def test_late_message_is_refused_with_the_reason(expires_at: int, kind: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason) as refusal:
        refuse_expired(expires_at, 1_000)
    assert refusal.value.kind == kind
