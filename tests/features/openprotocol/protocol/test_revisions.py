"""Which revision of a message is tried next: a fixed, a learnt or the newest one; a rejected one is not retried."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.features.openprotocol.protocol.mids import Decline, Mid
from edge.features.openprotocol.protocol.revisions import (
    Revisions,
    decode_revisions,
    encode_revisions,
    rejects_revision,
)

OFFERED = (6, 5, 4, 3, 2, 1)


@pytest.mark.parametrize(
    ("fixed", "learnt", "rejected", "expected"),
    [
        ({}, {}, [], OFFERED),
        ({1: 9}, {1: 3}, [9], (9,)),
        ({}, {1: 3}, [], (3, 2, 1, 6, 5, 4)),
        ({}, {1: 7}, [], OFFERED),
        ({}, {}, [6, 5], (4, 3, 2, 1)),
        ({}, {1: 3}, [3, 6], (2, 1, 5, 4)),
        ({}, {}, OFFERED, OFFERED),
    ],
)
def test_revisions_are_tried_from_the_learnt_or_newest_one_on(
    fixed: dict[int, int], learnt: dict[int, int], rejected: list[int], expected: tuple[int, ...]
) -> None:
    revisions = Revisions(fixed, learnt)
    for revision in rejected:
        revisions.reject(1, revision)
    assert revisions.candidates(1, OFFERED) == expected
    assert revisions.candidates(60, OFFERED) == OFFERED


def test_accepted_revision_is_tried_first() -> None:
    revisions = Revisions()
    revisions.reject(1, 6)
    revisions.accept(1, 5)
    assert (revisions.learnt, revisions.rejections) == ({1: 5}, 0)
    assert revisions.candidates(1, OFFERED) == (5, 4, 3, 2, 1, 6)


def test_connection_that_ends_once_rejects_no_revision() -> None:
    revisions = Revisions()
    for _ in range(2):
        revisions.note_closed(1, 6)
        assert revisions.candidates(1, OFFERED)[0] == 6
    revisions.note_closed(1, 6)
    assert revisions.candidates(1, OFFERED)[0] == 5


def test_silence_rejects_a_new_revision_and_later_an_accepted_one() -> None:
    """A controller that starts accepts connections before it answers."""
    revisions = Revisions(learnt={1: 6})
    for _ in range(3):
        assert revisions.candidates(1, OFFERED)[0] == 6
        revisions.note_unanswered(1, 6)
    for revision in (5, 4, 3, 2, 1):
        assert revisions.candidates(1, OFFERED)[0] == revision
        revisions.note_unanswered(1, revision)
    assert revisions.candidates(1, OFFERED) == OFFERED
    revisions.note_unanswered(64, 6)
    assert revisions.candidates(64, OFFERED) == OFFERED


@pytest.mark.parametrize(
    ("mid", "error", "expected"),
    [
        (Mid.START, Decline.BUSY, False),
        (Mid.START, Decline.CONNECTED_ALREADY, False),
        (Mid.START, Decline.OTHER_ACTOR, False),
        (Mid.START, Decline.COMMAND_FAILED, True),
        (Mid.START, 0, True),
        (Mid.OLD_RESULT, Decline.NO_RESULT, False),
        (Mid.SELECT_JOB, Decline.JOB_NOT_SET, False),
        (Mid.RESULT_SUBSCRIBE, Decline.RESULTS_SUBSCRIBED, False),
        (Mid.RESULT_SUBSCRIBE, Decline.REVISION_TO_SUBSCRIBE, True),
    ],
)
def test_decline_rejects_the_revision_unless_it_has_another_reason(mid: int, error: int, *, expected: bool) -> None:
    assert rejects_revision(mid, error) is expected


@given(st.dictionaries(st.integers(0, 9999), st.integers(0, 999)))
def test_learnt_revisions_are_unchanged_after_encoding(learnt: dict[int, int]) -> None:
    assert decode_revisions(encode_revisions(learnt)) == learnt


@given(st.text())
def test_damaged_text_of_revisions_is_decoded(text: str) -> None:
    assert all(mid < 10_000 and revision < 1000 for mid, revision in decode_revisions(text).items())
