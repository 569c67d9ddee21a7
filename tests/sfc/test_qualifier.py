"""The table of qualifiers agrees with the names of IEC 61131-3."""

import pytest

from edge.model.recipe import Qualifier
from edge.sfc.qualifier import QUALIFIER_RULES, Leave, Moment


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
