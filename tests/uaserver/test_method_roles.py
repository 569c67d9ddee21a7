"""Each method requires a role; no role may call an unlisted method."""

from edge.model.job_state import METHODS, RESPONSE_METHODS
from edge.model.user import Role
from edge.uaserver.method_roles import METHOD_ROLES, is_for_observers, may_call


def test_every_job_method_is_in_the_role_table() -> None:
    assert {*METHODS, *RESPONSE_METHODS} <= METHOD_ROLES.keys()


def test_observer_may_call_only_read_methods() -> None:
    assert {name for name in METHOD_ROLES if may_call(Role.OBSERVER, name)} == {
        *RESPONSE_METHODS,
        "ConditionRefresh",
        "ConditionRefresh2",
        "GetMonitoredItems",
        "ResendData",
    }


def test_role_includes_the_permissions_of_lower_roles() -> None:
    for name in METHOD_ROLES:
        allowed = [may_call(role, name) for role in Role]
        assert allowed == sorted(allowed)


def test_unlisted_method_is_refused_for_every_role() -> None:
    assert not may_call(Role.ENGINEER, "Shutdown")


def test_read_only_methods_require_the_observer_role() -> None:
    assert is_for_observers("ConditionRefresh")
    assert not is_for_observers("Start")
    assert not is_for_observers("unknown")
