"""A command that never left the gateway is recorded as such, also after the end of the run."""

import pytest

from edge.foundation.text import Text
from edge.model.recipe import Intervention
from edge.sfc.action import ENDED, JOB_ENDED, TIME_PASSED, unsent_commands, unsent_reason
from edge.sfc.advance import advance
from edge.sfc.history import read_record, record_decision
from edge.sfc.identifiers import parse_association_key as key
from edge.sfc.run import ActionState, Outcome, Sending
from edge.sfc.run_fields import decode, encode
from edge.sfc.signal import Abort, Advanced, IgnoredKind, Intervene, Signal, Tick, Withdrawn
from tests.sfc.driving import Driven
from tests.sfc.recipes import action, net_of, recipe, transition

NET = net_of(
    recipe(
        "A B",
        [transition("A", "B")],
        [action("bolt", "A", timeout_seconds=5, interventions=["retry", "skip"]), action("next", "B")],
    )
)
ENDING = net_of(recipe("A B", [transition("A", "B")], [action("bolt", "A", timeout_seconds=5)]))
BOLT = "J1/R1/bolt/1"
AWAY = Withdrawn(BOLT, "op is not connected: refused")


def test_timed_out_command_that_never_left_has_no_time_of_sending() -> None:
    driven = Driven(ENDING)
    driven.signal(Tick(), 6_000)
    assert driven.run.outcome is Outcome.FAILED
    driven.signal(AWAY, 6_010)
    association = driven.run.associations[key("bolt@A")]
    assert (association.state, association.withdrawn, association.sent_at) == (ActionState.TIMED_OUT, True, None)
    assert str(association.error) == "timed out after 5 s; never sent: op is not connected: refused"
    assert decode(encode(driven.run)).associations == driven.run.associations


def test_aborted_command_that_never_left_has_the_reason() -> None:
    driven = Driven(ENDING)
    driven.signal(Abort("by hand"), 100)
    driven.signal(Withdrawn(BOLT), 110)
    association = driven.run.associations[key("bolt@A")]
    assert (association.state, str(association.error), association.sent_at) == (ActionState.STOPPED, "never sent", None)


def test_skipped_command_that_never_left_keeps_the_result_of_the_person() -> None:
    driven = Driven(NET)
    driven.signal(Intervene(Intervention.SKIP, action="bolt", data={"by": "hand"}, reason="seen", by="anna"), 100)
    driven.signal(AWAY, 110)
    association = driven.run.associations[key("bolt@A")]
    assert (association.state, association.error, association.result, association.sent_at) == (
        ActionState.COMPLETED,
        None,
        {"by": "hand"},
        None,
    )


def test_earlier_attempt_that_never_left_is_marked_in_the_past() -> None:
    driven = Driven(NET)
    driven.signal(Tick(), 6_000)
    driven.signal(Intervene(Intervention.RETRY, action="bolt", reason="again", by="anna"), 6_100)
    driven.signal(AWAY, 6_200)
    (past,) = driven.run.past.values()
    assert (past.attempt, past.withdrawn, past.sent_at) == (1, True, None)
    assert driven.run.associations[key("bolt@A")].sent_at == 6_100
    assert decode(encode(driven.run)).past == driven.run.past


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (BOLT, IgnoredKind.NOT_POSSIBLE),
        ("J1/R1/bolt/7", IgnoredKind.LATE),
        ("J1/R2/bolt/1", IgnoredKind.FOREIGN),
        ("no command", IgnoredKind.FOREIGN),
    ],
)
def test_command_that_is_open_or_unknown_is_not_withdrawn(command: str, kind: IgnoredKind) -> None:
    assert Driven(ENDING).ignored(Withdrawn(command), 100) is kind


@pytest.mark.parametrize("signal", [AWAY, Withdrawn(BOLT), Withdrawn(BOLT, "why", may_have_left=True)])
def test_withdrawal_is_recorded_and_read(signal: Withdrawn) -> None:
    driven = Driven(ENDING)
    driven.signal(Tick(), 6_000)
    before = driven.run
    advanced = advance(ENDING, before, signal, 6_010)
    assert isinstance(advanced, Advanced)
    stored_decision = record_decision(ENDING, before, signal, advanced, 3, 6_010)
    assert read_record(ENDING, advanced.run, stored_decision).signal == signal


def limited(qualifier: str = "L") -> Driven:
    """Return a run whose first step has a limited action, two seconds long."""
    reset = [action("bolt", "B", "R")] if qualifier == "SL" else []
    first = action("bolt", "A", qualifier, duration_seconds=2, timeout_seconds=0)
    condition = "steps.A.T > 3s" if qualifier == "SL" else "always"
    return Driven(net_of(recipe("A B", [transition("A", "B", condition)], [first, *reset, action("next", "B")])))


def test_limited_command_that_never_left_is_completed_with_an_error() -> None:
    """Reaching T is done, not failed; but the tool did nothing."""
    driven = limited()
    driven.signal(Tick(), 9_000)
    driven.signal(Withdrawn(BOLT, TIME_PASSED), 9_010)
    association = driven.run.associations[key("bolt@A")]
    assert (association.state, str(association.error)) == (ActionState.COMPLETED, f"never sent: {TIME_PASSED}")
    assert (association.sending, association.sent_at) == (Sending.NEVER, None)
    assert unsent_commands(driven.run) == (association,)


def test_command_of_an_earlier_process_may_have_been_sent() -> None:
    driven = limited()
    driven.signal(Tick(), 9_000)
    doubt = Withdrawn(BOLT, TIME_PASSED, may_have_left=True)
    driven.signal(doubt, 9_010)
    association = driven.run.associations[key("bolt@A")]
    assert (association.sending, association.sent_at) == (Sending.MAYBE, 0)
    assert str(association.error) == f"may have been sent: {TIME_PASSED}"
    assert decode(encode(driven.run)).associations == driven.run.associations
    assert driven.ignored(doubt, 9_020) is IgnoredKind.DUPLICATE


def test_answered_command_is_not_in_doubt() -> None:
    """The stop of an SL follows its answer."""
    driven = limited("SL")
    driven.answer("bolt", 100)
    driven.signal(Tick(), 2_000)
    assert driven.sent == ["stop J1/R1/bolt/1"]
    assert driven.ignored(Withdrawn(BOLT, may_have_left=True), 9_010) is IgnoredKind.DUPLICATE


@pytest.mark.parametrize(
    ("qualifier", "signal", "now", "reason"),
    [
        ("L", Tick(), 9_000, TIME_PASSED),
        ("SL", Tick(), 9_000, TIME_PASSED),
        ("L", Abort("by hand"), 500, JOB_ENDED),
    ],
)
def test_reason_is_that_of_the_end_of_the_command(qualifier: str, signal: Signal, now: int, reason: Text) -> None:
    driven = limited(qualifier)
    driven.signal(signal, now)
    assert unsent_reason(driven.net, driven.run, BOLT) == reason


def test_reason_of_a_time_limit_is_its_time_also_at_the_end_of_the_job() -> None:
    driven = Driven(ENDING)
    driven.signal(Tick(), 6_000)
    assert driven.run.outcome is Outcome.FAILED
    assert unsent_reason(driven.net, driven.run, BOLT) == TIME_PASSED


def test_reason_of_a_skipped_or_unknown_command_names_no_time() -> None:
    driven = Driven(NET)
    driven.signal(Intervene(Intervention.SKIP, action="bolt", reason="seen", by="anna"), 100)
    assert unsent_reason(driven.net, driven.run, BOLT) == ENDED
    assert [unsent_reason(driven.net, driven.run, text) for text in ("J1/R1/bolt/7", "J1/R2/bolt/1", "?")] == [""] * 3
