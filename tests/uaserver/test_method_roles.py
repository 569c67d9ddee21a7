"""Each method requires a role; no role may call an unlisted method."""

from edge.model.job_state import METHODS, RESPONSE_METHODS
from edge.model.role import Role
from edge.uaserver.method_roles import METHOD_ROLES, is_for_observers, may_call


def test_every_job_method_stands_in_the_table() -> None:
    assert {*METHODS, *RESPONSE_METHODS} <= METHOD_ROLES.keys()


def test_an_observer_may_only_ask() -> None:
    assert {name for name in METHOD_ROLES if may_call(Role.OBSERVER, name)} == {
        *RESPONSE_METHODS,
        "ConditionRefresh",
        "ConditionRefresh2",
        "GetMonitoredItems",
        "ResendData",
    }


def test_each_role_may_what_the_one_before_it_may() -> None:
    for name in METHOD_ROLES:
        allowed = [may_call(role, name) for role in Role]
        assert allowed == sorted(allowed)


def test_a_method_that_is_not_in_the_table_is_for_no_role() -> None:
    assert not may_call(Role.ENGINEER, "Shutdown")


def test_methods_that_only_read_are_those_of_observers() -> None:
    assert is_for_observers("ConditionRefresh")
    assert not is_for_observers("Start")
    assert not is_for_observers("unknown")
