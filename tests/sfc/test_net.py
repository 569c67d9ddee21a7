"""A net rebuilds every request of a decision."""

import pytest

from edge.model.recipe import Qualifier
from edge.sfc.net import QUALIFIER_RULES, Leave, Moment, request_of
from edge.sfc.run import Association, Run, find_command
from edge.sfc.signal import Phase
from tests.sfc.driving import Driven
from tests.sfc.recipes import action, chain, net_of


def test_requests_can_be_rebuilt_for_every_phase() -> None:
    driven = Driven(net_of(chain("A B", action("s", "A", "S"), action("s", "B", "R", type_id="off"))))
    before = driven.run
    start = request_of(driven.net, before, Phase.START, association_of(before, "J1/R1/s/1"), "A")
    assert start == driven.requests[0]
    driven.answer("s", 1)
    reset = request_of(driven.net, driven.run, Phase.RESET, association_of(driven.run, "J1/R1/s/1/reset"), "B")
    assert (start.type_id, reset.type_id, reset.attempt) == ("s.v1", "off", 1)


def association_of(run: Run, command: str) -> Association:
    association = find_command(run, command)
    assert association is not None
    return association


def test_every_qualifier_has_a_rule() -> None:
    assert QUALIFIER_RULES.keys() == set(Qualifier)


def test_the_timed_qualifiers_are_those_with_a_delay_or_a_limit() -> None:
    assert {qualifier for qualifier, rule in QUALIFIER_RULES.items() if rule.timed} == {"L", "D", "SD", "DS", "SL"}


def test_the_stored_qualifiers_are_those_with_an_s() -> None:
    assert {qualifier for qualifier, rule in QUALIFIER_RULES.items() if rule.stored} == {"S", "SD", "DS", "SL"}


def test_only_r_resets_and_only_p0_is_sent_when_the_step_is_left() -> None:
    assert [qualifier for qualifier, rule in QUALIFIER_RULES.items() if rule.resets] == ["R"]
    assert [qualifier for qualifier, rule in QUALIFIER_RULES.items() if rule.sends is Moment.DEACTIVATION] == ["P0"]


@pytest.mark.parametrize("qualifier", ["N", "L", "D"])
def test_action_that_is_not_stored_is_stopped_with_its_step(qualifier: str) -> None:
    assert QUALIFIER_RULES[Qualifier(qualifier)].leave is Leave.STOP


def test_no_step_waits_for_sd_and_p0() -> None:
    assert {qualifier for qualifier, rule in QUALIFIER_RULES.items() if not rule.holds} == {"SD", "P0"}
