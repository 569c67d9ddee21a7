"""The fence: what the answers of the sentinels say of our primary, as tables and for any order of answers."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from edge.foundation.errors import Unavailable
from edge.foundation.text import Text
from edge.store.fence import (
    MARGIN_S,
    Confirmed,
    Doubt,
    Fence,
    Judgement,
    Superseded,
    Veto,
    confirmed_until,
    find_successor,
    judge,
    quorum_problem,
)
from edge.store.sentinels import Primary, SentinelView
from tests.english import english

OURS = Primary("10.0.0.1", 6379, 7)
OTHER = Primary("10.0.0.2", 6379, 8)
NEVER = float("-inf")


def view(
    sentinel_id: str = "a",
    primary: Primary = OURS,
    *flags: str,
    last_ok_ping_s: float = 0.4,
    sentinels: int = 3,
    quorum: int = 2,
) -> SentinelView:
    return SentinelView(
        sentinel_id, primary, frozenset({"master", *flags}), last_ok_ping_s, 5.0, 180.0, quorum, sentinels
    )


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (view(), Confirmed(100 + 5.0 - 0.4 - MARGIN_S)),
        (view(last_ok_ping_s=9.0), Confirmed(100 + 5.0 - 9.0 - MARGIN_S)),
        (view(last_ok_ping_s=-60.0), Confirmed(100 + 5.0 - MARGIN_S)),
        (view("a", OURS, "s_down"), Doubt(Text("a sentinel does not reach 10.0.0.1:6379"))),
        (view("a", OURS, "s_down", "o_down"), Veto(Text("a failover of 10.0.0.1:6379 has begun (o_down)"), 280)),
        (
            view("a", OURS, "failover_in_progress"),
            Veto(Text("a failover of 10.0.0.1:6379 has begun (failover_in_progress)"), 280),
        ),
        (view("a", OTHER), Superseded(Text("a failover has made 10.0.0.2:6379 the primary instead of 10.0.0.1:6379"))),
        (
            view("a", Primary("10.0.0.1", 6379, 9)),
            Superseded(Text("a failover has made 10.0.0.1:6379 the primary instead of 10.0.0.1:6379")),
        ),
        (
            replace(view("a", OURS, "failover_in_progress"), is_watched=False),
            Confirmed(100 + 5.0 - MARGIN_S),
        ),
        (
            view("a", Primary("10.0.0.3", 6379, 6)),
            Doubt(Text("a sentinel still names 10.0.0.3:6379, not 10.0.0.1:6379")),
        ),
    ],
)
def test_answer_of_a_sentinel_is_judged(answer: SentinelView, expected: Judgement) -> None:
    assert english(judge(answer, OURS, 100.0)) == english(expected)


@pytest.mark.parametrize(
    ("judgements", "majority", "until"),
    [
        ([], 1, NEVER),
        ([Confirmed(5), Confirmed(9), Confirmed(7)], 2, 7),
        ([Confirmed(5), Confirmed(9), Confirmed(7)], 3, 5),
        ([Confirmed(5)], 2, NEVER),
        ([Confirmed(5), Confirmed(9), Doubt(Text(""))], 2, 5),
        ([Confirmed(5), Confirmed(9), Veto(Text(""), 4)], 2, NEVER),
        ([Confirmed(5), Confirmed(9), Veto(Text(""), 2)], 2, 5),
        ([Confirmed(5), Confirmed(9), Superseded(Text(""))], 2, NEVER),
    ],
)
def test_majority_confirms_until_its_last_member_may_doubt(
    judgements: list[Judgement], majority: int, until: float
) -> None:
    assert confirmed_until(judgements, majority, 3.0) == until


_judgements = st.one_of(
    st.floats(0, 10).map(Confirmed),
    st.just(Doubt(Text(""))),
    st.floats(0, 10).map(lambda until: Veto(Text(""), until)),
    st.just(Superseded(Text(""))),
)


@given(st.lists(_judgements, min_size=1, max_size=7), st.floats(0, 10))
def test_no_second_majority_can_elect_while_one_confirms(judgements: list[Judgement], now: float) -> None:
    """Whenever commits are allowed, fewer than a majority of the sentinels may see the primary down."""
    majority = len(judgements) // 2 + 1
    if now < confirmed_until(judgements, majority, now):
        vouching = sum(isinstance(judgement, Confirmed) and judgement.until > now for judgement in judgements)
        assert len(judgements) - vouching < majority
        assert not any(isinstance(judgement, Superseded) for judgement in judgements)
        assert not any(isinstance(judgement, Veto) and judgement.until > now for judgement in judgements)


def test_notes_may_be_missing_in_a_break_and_shortly_after_it() -> None:
    now = 100.0
    fence = Fence(OURS, lambda: now)

    def hear(*flags: str) -> bool:
        for name in "abc":
            fence.take(view(name, OURS, *flags), now)
        return fence.may_lack_notes

    assert not hear()
    now = 110.0
    assert fence.may_lack_notes
    assert hear()
    now = 112.0
    assert hear()
    now = 114.0
    assert not hear()
    assert hear("s_down", "o_down")
    fence.note_break()
    assert fence.may_lack_notes


OLDER = Primary("10.0.0.3", 6379, 6)


@pytest.mark.parametrize(
    ("views", "unconfirmed_s", "expected"),
    [
        ([view("a"), view("b")], 0, None),
        ([view("a"), view("b", OTHER)], 0, OTHER),
        ([view("b", OLDER), view("c", OLDER)], 1, None),
        ([view("b", OLDER), view("c", OLDER)], 11, OLDER),
        ([view("b", OLDER)], 11, None),
        ([view("a"), view("b", OLDER), view("c", OLDER)], 11, None),
    ],
    ids=["ours", "later failover", "not heard of ours yet", "added again", "one alone", "one still names ours"],
)
def test_successor_is_of_a_later_failover_or_named_for_long(
    views: list[SentinelView], unconfirmed_s: float, expected: Primary | None
) -> None:
    assert find_successor(views, OURS, unconfirmed_s) == expected


@pytest.mark.parametrize(
    ("quorum", "sentinels", "found"), [(2, 3, ""), (3, 5, ""), (1, 1, ""), (1, 3, "quorum of 1 of 3"), (2, 5, "2 of 5")]
)
def test_quorum_below_the_majority_is_a_problem(quorum: int, sentinels: int, found: str) -> None:
    problem = quorum_problem([view(quorum=quorum, sentinels=sentinels)])
    assert found in str(problem or "")
    assert bool(problem) is bool(found)


class _Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_fence_lapses_when_the_sentinels_fall_silent() -> None:
    clock = _Clock()
    fence = Fence(OURS, clock)
    with pytest.raises(Unavailable, match="no majority of the sentinels"):
        fence.require()
    fence.take(view("a"), 100.0)
    assert not fence.is_confirmed
    fence.take(view("b", last_ok_ping_s=1.0), 100.1)
    assert fence.is_confirmed
    clock.now = 103.59
    fence.require()
    clock.now = 103.61
    with pytest.raises(Unavailable, match="no majority of the sentinels"):
        fence.require()


def test_veto_of_one_sentinel_closes_until_it_answers_otherwise() -> None:
    fence = Fence(OURS, _Clock())
    for text in "abc":
        fence.take(view(text), 100.0)
    fence.take(view("a", OURS, "failover_in_progress"), 100.0)
    assert "failover_in_progress" in str(fence.reason)
    fence.take(view("a"), 100.0)
    assert fence.reason == ""


def test_sentinel_cut_off_from_the_primary_stops_nothing() -> None:
    """A majority that hears the primary keeps any other from being elected."""
    fence = Fence(OURS, _Clock())
    for word in "bc":
        fence.take(view(word), 100.0)
    fence.take(view("a", OURS, "s_down", last_ok_ping_s=60), 100.0)
    assert fence.is_confirmed


def test_forgotten_sentinel_does_not_raise_the_majority() -> None:
    clock = _Clock()
    fence = Fence(OURS, clock)
    fence.take(view("a", sentinels=5), 100.0)
    clock.now = 500.0
    for name in "bc":
        fence.take(view(name), 500.0)
    assert fence.is_confirmed


async def test_first_answer_of_a_later_failover_names_the_successor() -> None:
    fence = Fence(OURS, asyncio.get_running_loop().time)
    fence.take(view("a"), 0.0)
    assert not fence.replaced.is_set()
    fence.take(view("b", OTHER), 0.0)
    assert fence.replaced.is_set()
    assert fence.successor == OTHER


async def test_waiting_ends_with_the_confirmation_or_in_time() -> None:
    now = asyncio.get_running_loop().time()
    fence = Fence(OURS, asyncio.get_running_loop().time)
    with pytest.raises(Unavailable, match="not confirmed"):
        await fence.wait(0.01)
    waiting = asyncio.create_task(fence.wait(60.0))
    for item in "ab":
        await asyncio.sleep(0)
        fence.take(view(item), now)
    await waiting


async def test_waiting_ends_when_another_primary_is_named() -> None:
    """A store that is opened during a failover is opened again at once."""
    fence = Fence(OURS, asyncio.get_running_loop().time)
    waiting = asyncio.create_task(fence.wait(60.0))
    await asyncio.sleep(0)
    fence.take(view("a", OTHER), asyncio.get_running_loop().time())
    async with asyncio.timeout(1):
        with pytest.raises(Unavailable, match="a failover has made"):
            await waiting
