"""The permissions of the three roles: the lowest role that may call each method.

Clients cannot write any node: the server refuses every write, so there is no table for writes.
"""

from collections.abc import Mapping
from types import MappingProxyType

from edge.model.recipe import Intervention
from edge.model.user import INTERVENTION_ROLES, Role

RESOLVE_METHOD = "ResolveAction"
INTERVENE_METHODS: Mapping[str, Intervention] = MappingProxyType(
    {
        "RetryAction": Intervention.RETRY,
        "SkipAction": Intervention.SKIP,
        "ForceTransition": Intervention.FORCE,
        "CompleteStep": Intervention.COMPLETE,
    }
)
"""The methods that intervene in a job."""
RELEASE_METHOD = "ReleaseStops"
SWITCH_ON_METHOD = "SwitchOn"
SWITCH_OFF_METHOD = "SwitchOff"
"""The methods of the maintenance mode."""

SECURITY_METHODS = frozenset(
    {
        "UpdateCertificate",
        "CreateSigningRequest",
        "ApplyChanges",
        "CancelChanges",
        "GetRejectedList",
        "GetCertificates",
        "Open",
        "OpenWithMasks",
        "Read",
        "Write",
        "GetPosition",
        "SetPosition",
        "Close",
        "CloseAndUpdate",
        "AddCertificate",
        "RemoveCertificate",
    }
)
"""The methods of certificates and trust lists: for the engineers in `security_admins`."""

METHOD_ROLES: Mapping[str, Role] = MappingProxyType(
    {
        "GetMonitoredItems": Role.OBSERVER,
        "ResendData": Role.OBSERVER,
        "ConditionRefresh": Role.OBSERVER,
        "ConditionRefresh2": Role.OBSERVER,
        "RequestJobResponseByJobOrderID": Role.OBSERVER,
        "RequestJobResponseByJobOrderState": Role.OBSERVER,
        # The operator at the station controls the jobs that the station holds.
        "Start": Role.OPERATOR,
        "RevokeStart": Role.OPERATOR,
        "Pause": Role.OPERATOR,
        "Resume": Role.OPERATOR,
        "Stop": Role.OPERATOR,
        "Abort": Role.OPERATOR,
        "Cancel": Role.OPERATOR,
        "Clear": Role.OPERATOR,
        RESOLVE_METHOD: Role.OPERATOR,
        **{name: INTERVENTION_ROLES[kind] for name, kind in INTERVENE_METHODS.items()},
        RELEASE_METHOD: Role.OPERATOR,
        # The operator answers prompts and alarms.
        "Respond": Role.OPERATOR,
        "AnswerPrompt": Role.OPERATOR,
        "Acknowledge": Role.OPERATOR,
        "Confirm": Role.OPERATOR,
        "AddComment": Role.OPERATOR,
        "Reset": Role.OPERATOR,
        "Reset2": Role.OPERATOR,
        "TimedShelve": Role.OPERATOR,
        "TimedShelve2": Role.OPERATOR,
        "OneShotShelve": Role.OPERATOR,
        "OneShotShelve2": Role.OPERATOR,
        "Unshelve": Role.OPERATOR,
        "Unshelve2": Role.OPERATOR,
        # An alarm without a time limit on its silence is a matter of the plan.
        "Disable": Role.ENGINEER,
        "Enable": Role.ENGINEER,
        # Only an engineer plans: adds a job order or changes it.
        "Store": Role.ENGINEER,
        "StoreAndStart": Role.ENGINEER,
        "Update": Role.ENGINEER,
        SWITCH_ON_METHOD: Role.ENGINEER,
        SWITCH_OFF_METHOD: Role.ENGINEER,
    }
)
"""The lowest role that may call each method, by browse name; no role may call a method that is not listed."""


def may_call(role: Role, method: str) -> bool:
    """Return whether a role may call the method with this browse name."""
    return role >= METHOD_ROLES.get(method, Role.ENGINEER + 1)


def is_for_observers(method: str) -> bool:
    """Return whether a method with this browse name only reads: every role may call it."""
    return METHOD_ROLES.get(method) is Role.OBSERVER
