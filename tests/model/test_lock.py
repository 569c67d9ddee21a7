"""The claim of a dead owner expires with its lease."""

import msgspec
import pytest

from edge.model.lock import Lock, LockClaim, LockKind, lock_info


@pytest.mark.parametrize(("until", "has_expired"), [(None, False), (6, False), (5, True), (4, True)])
def test_claim_expires_at_the_end_of_its_lease(until: int | None, *, has_expired: bool) -> None:
    assert LockClaim(owner="a", since=1, until=until).has_expired(5) is has_expired


def test_lock_is_sent_with_holder_and_waiters_in_their_order() -> None:
    lock = Lock(
        holder=LockClaim(owner="J1", reason="tightens", since=1_000, until=4_000),
        waiters=(LockClaim(owner="J2", since=2_000, until=9_000), LockClaim(owner="J3", since=3_000)),
    )
    sent = msgspec.json.encode(lock_info(LockKind.EQUIPMENT, "wrench", lock, 5_000))
    assert msgspec.json.decode(sent) == {
        "Kind": "equipment",
        "ID": "wrench",
        "Holder": {
            "Owner": "J1",
            "Reason": "tightens",
            "Since": "1970-01-01T00:00:01Z",
            "Until": "1970-01-01T00:00:04Z",
            "Alive": False,
        },
        "Waiters": [
            {"Owner": "J2", "Since": "1970-01-01T00:00:02Z", "Until": "1970-01-01T00:00:09Z", "Alive": True},
            {"Owner": "J3", "Since": "1970-01-01T00:00:03Z", "Alive": True},
        ],
    }
