"""A lease ends when its value has been unchanged for four seconds of the clock of its observer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.store.lease_watch import JITTER_S, LIFETIME_S, LeaseValue, LeaseWatch, OwnLease, lease_value, parse_lease


class Observer:
    """A watch with a clock of its own, which looks at one lease."""

    def __init__(self) -> None:
        self.now = 100.0
        self._watch = LeaseWatch(lambda: self.now)

    def look(self, at: float, value: str | None) -> bool:
        """Return whether the lease has ended at an instant."""
        self.now = 100.0 + at
        return "edge" in self._watch.observe({"edge": value})


@pytest.mark.parametrize(
    ("looks", "ended"),
    [
        ([(0, "a:1"), (1, "a:1"), (2, "a:1"), (3, "a:1"), (3.85, "a:1")], False),
        ([(0, "a:1"), (1, "a:1"), (2, "a:1"), (3, "a:1"), (3.95, "a:1")], True),
        ([(0, "a:1"), (1, "a:1"), (2, "a:2"), (3, "a:2"), (4, "a:2"), (5, "a:2")], False),
        ([(0, "a:1"), (1, "a:1"), (2, "b:1"), (3, "b:1"), (4, "b:1"), (5, "b:1")], False),
        ([(0, "a:1"), (1, None)], True),
        ([(0, None)], True),
        ([(0, "a:1"), (1, None), (2, "a:1"), (3, "a:1"), (4, "a:1"), (5, "a:1")], False),
        ([(0, "a:1"), (1, "a:1"), (7, "a:1"), (8, "a:1"), (9, "a:1"), (10, "a:1")], False),
        ([(0, "a:1"), (1, "a:1"), (7, "a:1"), (8, "a:1"), (9, "a:1"), (10, "a:1"), (11, "a:1")], True),
        ([(number, "boot pid:[4026531836] 1 4b1e") for number in range(60)], False),
    ],
    ids=[
        "shorter than the lifetime",
        "unchanged for the lifetime",
        "renewed meanwhile",
        "another holder meanwhile",
        "released",
        "absent at the first look",
        "released and held again",
        "soon after a gap without looks",
        "long after a gap without looks",
        "former form: its expiry at the server decides",
    ],
)
def test_lease_ends_by_the_looks_of_its_observer(looks: list[tuple[float, str | None]], *, ended: bool) -> None:
    observer = Observer()
    *before, last = looks
    for at, value in before:
        observer.look(at, value)
    assert observer.look(*last) is ended


@given(pauses=st.lists(st.floats(0.05, 2.0), min_size=1, max_size=60), renewed_every=st.floats(0.1, 2.9))
def test_lease_that_is_renewed_in_time_never_ends(pauses: list[float], renewed_every: float) -> None:
    observer, at = Observer(), 0.0
    for pause in pauses:
        at += pause if renewed_every + pause < LIFETIME_S - JITTER_S else 0.05
        assert not observer.look(at, f"holder:{int(at / renewed_every)}")


def test_values_of_one_process_never_repeat() -> None:
    values = [lease_value("token") for _ in range(3)]
    assert len(set(values)) == 3


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("boot pid:[1] 7 4b1e:12", LeaseValue("boot pid:[1] 7 4b1e", 12)),
        ("boot pid:[1] 7 4b1e", LeaseValue("boot pid:[1] 7 4b1e", None)),
        ("token", LeaseValue("token", None)),
        (":5", LeaseValue(":5", None)),
        ("token:٣", LeaseValue("token:٣", None)),
        ("", LeaseValue("", None)),
    ],
)
def test_lease_is_parsed_in_both_forms(text: str, parts: LeaseValue) -> None:
    assert parse_lease(text) == parts


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
