"""A lock is sent with its holder and waiters, and whether each of them is alive."""

import msgspec

from edge.model.lock import Lock, LockClaim, LockKind
from edge.model.lock_message import lock_info


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
