"""A Tick that comes late, as after a restart, requests what punctual ones would have, and nothing that is over."""

import pytest

from edge.sfc.identifiers import parse_association_key as key
from edge.sfc.run import ActionState, Outcome
from edge.sfc.run_fields import decode, encode
from edge.sfc.signal import MirrorCopy, Tick
from tests.sfc.driving import Driven
from tests.sfc.recipes import Json, action, net_of, recipe, transition

START, STOP = "start J1/R1/bolt/1", "stop J1/R1/bolt/1"


def left_after(condition: str, qualifier: str, duration: float, target: str = "B") -> Json:
    """Return a recipe whose first step has a timed action, and is left by a condition."""
    timed = action("bolt", "A", qualifier, duration_seconds=duration, timeout_seconds=0)
    reset = [action("bolt", "C", "R")] if qualifier in {"SD", "DS", "SL"} else []
    transitions = [transition("A", "B", condition), transition("B", "C", "never")]
    return recipe("A B C", transitions, [timed, *reset, action("next", target, timeout_seconds=0)])


def restarted(data: Json) -> Driven:
    """Return a run that was read from the store after its start."""
    driven = Driven(net_of(data))
    driven.run = decode(encode(driven.run))
    return driven


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize(
    ("qualifier", "duration", "requested"),
    [
        # Left at 3 s.
        ("D", 2, [START, STOP]),
        ("D", 4, []),
        ("DS", 2, [START]),
        ("DS", 4, []),
        ("SD", 2, [START]),
        ("SD", 4, [START]),
    ],
)
def test_delayed_command_of_a_left_step_is_as_a_punctual_tick_had_it(
    qualifier: str, duration: float, requested: list[str], *, is_restarted: bool
) -> None:
    data = left_after("steps.A.T >= 3s", qualifier, duration)
    late = restarted(data) if is_restarted else Driven(net_of(data))
    late.signal(Tick(), 10_000)
    assert [text for text in late.sent if "bolt" in text] == requested
    assert "B" in late.run.active
    punctual, sent = Driven(net_of(data)), []
    for now in range(500, 10_001, 500):
        punctual.signal(Tick(), now)
        sent += [text for text in punctual.sent if "bolt" in text]
    assert sorted(sent) == sorted(requested)


def test_delayed_set_of_a_completed_run_is_dropped_by_a_late_tick() -> None:
    data = recipe(
        "A B C",
        [transition("A", "B", "steps.A.T >= 3s"), transition("A", "C", "never")],
        [action("lamp", "A", "SD", duration_seconds=5), action("lamp", "C", "R")],
    )
    late = restarted(data)
    late.signal(Tick(), 10_000)
    assert (late.run.outcome, late.sent) == (Outcome.COMPLETED, [])


def test_condition_on_a_mirrored_set_is_tested_as_of_now() -> None:
    """Nothing says what the set held at an earlier instant."""
    data = left_after("steps.A.T == 3s and 'C17' in mirrors.carriers", "D", 20)
    late = restarted(data)
    assert late.net.unsteady == late.net.timed == {"A"}
    late.signal(Tick(), 10_000, {"carriers": MirrorCopy(members=frozenset({"C17"}))})
    assert late.run.active == {"A"}


def test_condition_is_not_tested_at_instants_before_the_last_change() -> None:
    """The result came at 4 s: at 3 s it was not known, and `T == 3s` is over."""
    data = recipe(
        "A B",
        [transition("A", "B", "steps.A.T == 3s and actions.bolt.result.ok")],
        [action("bolt", "A", timeout_seconds=0)],
    )
    driven = Driven(net_of(data))
    driven.answer("bolt", 4_000, {"ok": True})
    driven.run = decode(encode(driven.run))
    driven.signal(Tick(), 10_000)
    assert driven.run.active == {"A"}


def test_limited_command_that_was_requested_ends_completed() -> None:
    driven = restarted(left_after("always", "L", 2))
    driven.signal(Tick(), 10_000)
    assert driven.run.associations[key("bolt@A")].state is ActionState.COMPLETED
    assert driven.sent[0] == STOP
