"""A command that never left the gateway is recorded as such, also after the end of the run."""

import pytest

from edge.model.recipe import Intervention
from edge.sfc.advance import advance
from edge.sfc.association_key import parse_association_key as key
from edge.sfc.history import read_record, record_decision
from edge.sfc.run import ActionState, Outcome
from edge.sfc.run_fields import decode, encode
from edge.sfc.signal import Abort, Advanced, IgnoredKind, Intervene, Tick, Withdrawn
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
    each = driven.run.associations[key("bolt@A")]
    assert (each.state, each.withdrawn, each.sent_at) == (ActionState.TIMED_OUT, True, None)
    assert each.error == "timed out after 5 s; never sent: op is not connected: refused"
    assert decode(encode(driven.run)).associations == driven.run.associations


def test_aborted_command_that_never_left_has_the_reason() -> None:
    driven = Driven(ENDING)
    driven.signal(Abort("by hand"), 100)
    driven.signal(Withdrawn(BOLT), 110)
    each = driven.run.associations[key("bolt@A")]
    assert (each.state, each.error, each.sent_at) == (ActionState.STOPPED, "never sent", None)


def test_skipped_command_that_never_left_keeps_the_result_of_the_person() -> None:
    driven = Driven(NET)
    driven.signal(Intervene(Intervention.SKIP, action="bolt", data={"by": "hand"}, reason="seen", by="anna"), 100)
    driven.signal(AWAY, 110)
    each = driven.run.associations[key("bolt@A")]
    assert (each.state, each.error, each.result, each.sent_at) == (ActionState.COMPLETED, None, {"by": "hand"}, None)


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


def test_withdrawal_is_recorded_and_read() -> None:
    driven = Driven(ENDING)
    driven.signal(Tick(), 6_000)
    before = driven.run
    advanced = advance(ENDING, before, AWAY, 6_010)
    assert isinstance(advanced, Advanced)
    stored = record_decision(ENDING, before, AWAY, advanced, 3, 6_010)
    assert read_record(ENDING, advanced.run, stored).signal == AWAY
