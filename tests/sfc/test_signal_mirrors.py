"""Conditions on members of mirrored sets: their value, and the replay of their records."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.expression.value import UNKNOWN
from edge.sfc.advance import advance
from edge.sfc.history import StoredDecision, read_record, record_decision
from edge.sfc.net import Net
from edge.sfc.replay import differing_fields, replay
from edge.sfc.run import Outcome, Run, new_run
from edge.sfc.run_fields import decode, encode
from edge.sfc.signal import NO_MIRRORS, Advanced, Answer, AskedMirrors, MirrorCopy, Mirrors, Start, Tick
from edge.sfc.waiting import TransitionWaits, explain_waiting
from tests.sfc.recipes import action, chain, faults_of, net_of, recipe, transition

IN = "carrier in mirrors.carriers"


def gate(condition: str) -> Net:
    return net_of(recipe("A B", [transition("A", "B", condition)]))


def started(net: Net, mirrors: Mirrors = NO_MIRRORS, **parameters: Any) -> Run:
    advanced = advance(net, new_run("J1", "s", "R1", parameters), Start(), 0, mirrors)
    assert isinstance(advanced, Advanced)
    return advanced.run


def copies(*members: str, is_stale: bool = False) -> Mirrors:
    return {"carriers": MirrorCopy(frozenset(members), is_stale)}


@pytest.mark.parametrize(
    ("condition", "mirrors", "clears"),
    [
        (IN, copies("C1", "C7"), True),
        (IN, copies("C1"), False),
        (IN, copies(), False),
        (IN, {}, False),
        (IN, {"tools": MirrorCopy(frozenset({"C7"}))}, False),
        (IN, copies("C7", is_stale=True), True),
        (f"not ({IN})", copies("C1"), True),
        (f"not ({IN})", copies("C7"), False),
        (f"not ({IN})", {}, False),
        (f"{IN} and not mirrors.carriers.stale", copies("C7", is_stale=True), False),
        (f"{IN} and not mirrors.carriers.stale", copies("C7"), True),
        ("mirrors.carriers.stale", copies(is_stale=True), True),
        ("not mirrors.carriers.stale", {}, False),
        ("nothing in mirrors.carriers", copies("C7"), False),
        ("number in mirrors.carriers", copies("17"), True),
        ("'C7' in mirrors['carriers']", copies("C7"), True),
        ("job.parameters.carrier in mirrors.carriers", copies("C7"), True),
        ("carrier in codes", {}, True),
        ("number in codes", {}, False),
        ("17 in numbers and not ('17' in numbers)", {}, True),
        ("true in codes", {}, False),
    ],
)
def test_member_condition_clears_with_the_copy(condition: str, mirrors: Mirrors, clears: object) -> None:
    parameters = {"carrier": "C7", "number": 17, "codes": ["C7", "17", 5], "numbers": [17]}
    assert (started(gate(condition), mirrors, **parameters).outcome is Outcome.COMPLETED) is clears


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("mirrors.carriers", "a mirror stands behind `in`"),
        ("mirrors.carriers == 'C7'", "a mirror stands behind `in`"),
        ("'C7' in mirrors.carriers.members", "not of the form"),
        ("mirrors.stale.now.x", "not of the form"),
        ("carrier in mirrors", "not of the form"),
        ("carrier in 'C7'", "where a list is needed"),
        ("steps.A.T in mirrors.carriers", "cannot be part of a calculation"),
        ("steps.A.T > if('x' in mirrors.carriers, 5, 10)", "cannot be compared with a choice by a mirror"),
        ("carrier in", "expected a value"),
    ],
)
def test_faulty_member_condition_is_refused(condition: str, reason: str) -> None:
    faults = faults_of(recipe("A B", [transition("A", "B", condition)]))
    assert len(faults) == 1
    assert reason in faults[0]


@pytest.mark.parametrize(("carrier", "reason"), [(5.5, "is neither a text"), (True, "is neither"), (["C"], "neither")])
def test_unsuitable_member_fails_the_run(carrier: object, reason: str) -> None:
    run = started(gate(IN), copies("C7"), carrier=carrier)
    assert run.outcome is Outcome.FAILED
    assert reason.rsplit(maxsplit=1)[-1] in str(run.error)


def test_variable_named_in_is_accepted() -> None:
    assert started(gate("in > 3 and in in mirrors.carriers"), copies("4"), **{"in": 4}).outcome is Outcome.COMPLETED


def test_wait_explains_member_and_copy() -> None:
    net = gate(IN)
    run = started(net, carrier="C7")

    def because(mirrors: Mirrors) -> str:
        (waits,) = explain_waiting(net, run, 5, mirrors=mirrors)
        assert isinstance(waits, TransitionWaits)
        return str(waits.unmet[0].because)

    assert because({}) == "carrier is 'C7', mirrors.carriers is not read yet"
    assert because(copies("C1")) == "carrier is 'C7', mirrors.carriers is a copy of 1 member"
    assert because(copies("C1", "C2", is_stale=True)).endswith("is a copy of 2 members, stale")


def test_recipe_without_mirror_records_no_mirror_query() -> None:
    net = net_of(chain("A B", action("one", "A")))
    assert net.mirrors == frozenset()
    run = started(net)
    advanced = advance(net, run, Answer("J1/R1/one/1", ok=True), 5, copies("C7"))
    assert isinstance(advanced, Advanced)
    assert advanced.mirrors == {}
    assert record_decision(net, run, Answer("J1/R1/one/1", ok=True), advanced, 2, 5).text == '[[0,"c"],[0,0,1,1]]'


def test_record_contains_only_queried_members() -> None:
    asked_mirrors = AskedMirrors(copies(*(f"C{number}" for number in range(10_000)), is_stale=True))
    assert asked_mirrors.has("carriers", "C7") is True
    assert asked_mirrors.has("carriers", "D7") is False
    assert asked_mirrors.has("tools", "T1") is UNKNOWN
    recorded = MirrorCopy(frozenset({"C7"}), is_stale=True, others=frozenset({"D7"}))
    assert asked_mirrors.recorded == {"carriers": recorded}
    assert recorded.has("C8") is UNKNOWN


CONDITIONS: dict[str, Callable[[Any, int], Any]] = {
    IN: lambda state, _: state and "C1" in state[0],
    f"not ({IN})": lambda state, _: state and "C1" not in state[0],
    f"{IN} and not mirrors.carriers.stale": lambda state, _: state and "C1" in state[0] and not state[1],
    f"{IN} or steps.{{step}}.T >= 3": lambda state, t: (state and "C1" in state[0]) or t >= 3000,
    "'C2' in mirrors.carriers": lambda state, _: state and "C2" in state[0],
}
STATES = st.none() | st.tuples(st.frozensets(st.sampled_from(["C1", "C2", "C3"])), st.booleans())


@given(st.lists(st.sampled_from(list(CONDITIONS)), min_size=1, max_size=6), st.lists(STATES, min_size=1, max_size=12))
def test_run_with_mirror_matches_an_oracle_and_replays(chosen: list[str], states: list[Any]) -> None:
    names = [f"S{number}" for number in range(len(chosen) + 1)]
    texts = [text.format(step=name) for text, name in zip(chosen, names, strict=False)]
    net = net_of(recipe(" ".join(names), [transition(*row) for row in zip(names, names[1:], texts, strict=False)]))
    run = new_run("J1", "s", "R1", {"carrier": "C1"})
    stored_decisions: list[StoredDecision] = []
    at, entered = 0, 0
    for number, state in enumerate(states):
        now = number * 1000
        mirrors = {"carriers": MirrorCopy(*state)} if state else NO_MIRRORS
        signal = Tick() if number else Start()
        advanced = advance(net, run, signal, now, mirrors)
        while at < len(chosen) and CONDITIONS[chosen[at]](state, now - entered):
            at, entered = at + 1, now
        if run.ended:
            assert not isinstance(advanced, Advanced)
            break
        assert isinstance(advanced, Advanced)
        stored_decisions.append(record_decision(net, run, signal, advanced, number + 1, now))
        # A restart between two decisions changes nothing.
        run = decode(encode(advanced.run))
        assert run.active == {names[at]}
        assert run.ended is (at == len(chosen))
    repeated = replay(net, run, [read_record(net, run, stored_decision) for stored_decision in stored_decisions])
    assert repeated.differences == ()
    assert differing_fields(run, repeated.run) == ()
