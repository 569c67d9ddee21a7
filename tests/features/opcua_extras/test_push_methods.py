"""Every method of certificates and trust lists has its permission and its NodeIds."""

from asyncua import ua

from edge.features.opcua_extras.push_methods import CONFIGURATION_METHODS, TRUST_LIST_METHODS, TRUST_LISTS
from edge.uaserver.method_roles import METHOD_ROLES, SECURITY_METHODS


def test_only_security_administrators_call_these_methods() -> None:
    assert {*CONFIGURATION_METHODS, *TRUST_LIST_METHODS} == SECURITY_METHODS
    assert not SECURITY_METHODS & METHOD_ROLES.keys()


def test_each_method_has_a_node_in_namespace_0() -> None:
    for name in CONFIGURATION_METHODS:
        assert hasattr(ua.ObjectIds, f"ServerConfiguration_{name}")
    for path in TRUST_LISTS.values():
        assert all(hasattr(ua.ObjectIds, f"{path}_{name}") for name in TRUST_LIST_METHODS)
