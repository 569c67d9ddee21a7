"""Who may do what: three roles, and the least one each method asks for.

Nothing in our address space is written by clients, so there is no table of writes: every write is refused.
"""

from collections.abc import Mapping
from types import MappingProxyType

from edge.opcua.access import Role

RESOLVE_METHOD = "ResolveAction"

METHOD_ROLES: Mapping[str, Role] = MappingProxyType(
    {
        "GetMonitoredItems": Role.OBSERVER,
        "ResendData": Role.OBSERVER,
        "RequestJobResponseByJobOrderID": Role.OBSERVER,
        "RequestJobResponseByJobOrderState": Role.OBSERVER,
        # Whoever stands at the station decides about the jobs that are there.
        "Start": Role.OPERATOR,
        "RevokeStart": Role.OPERATOR,
        "Pause": Role.OPERATOR,
        "Resume": Role.OPERATOR,
        "Stop": Role.OPERATOR,
        "Abort": Role.OPERATOR,
        "Cancel": Role.OPERATOR,
        "Clear": Role.OPERATOR,
        RESOLVE_METHOD: Role.OPERATOR,
        # What is to be done at all comes from those who plan it.
        "Store": Role.ENGINEER,
        "StoreAndStart": Role.ENGINEER,
        "Update": Role.ENGINEER,
    }
)
"""The least role each method asks for, by its browse name; a method that is not here is for nobody."""


def may_call(role: Role, method: str) -> bool:
    """Return whether a role may call the method of this browse name."""
    return role >= METHOD_ROLES.get(method, Role.ENGINEER + 1)
