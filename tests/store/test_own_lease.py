"""The term of the lease of this instance: certain for a while after each renewal, another one after a pause."""

from edge.store.lease_watch import LIFETIME_S
from edge.store.own_lease import OwnLease


def test_renewals_in_time_continue_a_term() -> None:
    now = 0.0
    lease = OwnLease(lambda: now)
    assert not lease.is_certain
    terms = set[int]()
    for _ in range(5):
        lease.note_renewed(now)
        terms.add(lease.term)
        now += LIFETIME_S / 2
        assert lease.is_certain
    assert len(terms) == 1


def test_renewal_whose_reply_comes_after_a_freeze_begins_another_term() -> None:
    """Another instance may have taken over between its commit and the thaw."""
    now = 0.0
    lease = OwnLease(lambda: now)
    lease.note_renewed(now)
    before, sent_at = lease.term, now + 1.0
    now += LIFETIME_S
    lease.note_renewed(sent_at)
    assert (lease.is_certain, lease.term > before) == (True, True)
    now = sent_at + LIFETIME_S
    assert not lease.is_certain
