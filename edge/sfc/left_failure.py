"""Finds failures that no active step can handle: the run fails, or it stands until a person has decided.

A falling pulse (P0) is sent when its step is left, and a stored action may fail after its step. Where the recipe allows
to retry or skip the action, no transition clears before a person does so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from edge.model.recipe import Intervention
from edge.sfc.identifiers import AssociationKey
from edge.sfc.net import Moment, Net
from edge.sfc.run import UNSUCCESSFUL, Run

if TYPE_CHECKING:
    from edge.sfc.draft import Draft

HELPS_A_FAILURE: Final = frozenset({Intervention.RETRY, Intervention.SKIP})
"""The interventions for which a failure waits, where the recipe allows one of them."""


def left_failures(net: Net, state: Draft | Run) -> tuple[AssociationKey, ...]:
    """Return the recorded failures that no active step can handle, in the order in which they occurred.

    The failure of a pulse or reset that its step did not wait for is not included: it does not concern the run.
    """
    if not state.faults:
        return ()
    failed = [
        key
        for key in dict.fromkeys(state.faults)
        if key in state.associations and state.associations[key].state in UNSUCCESSFUL
    ]
    attended = {key.action for key in failed if key.step in state.active}
    return tuple(key for key in failed if _is_left(net, key, attended))


def _is_left(net: Net, key: AssociationKey, attended: set[str]) -> bool:
    rule = net.actions[key.latest].rule
    return rule.sends is Moment.DEACTIVATION or (rule.stored and key.action not in attended)


def remedies(net: Net, key: AssociationKey) -> frozenset[Intervention]:
    """Return the interventions that the recipe allows for the failure of an action.

    A start that was left behind is not retried: its step is active again, and starts the action in its turn.
    """
    allowed = net.actions[key.latest].interventions & HELPS_A_FAILURE
    return allowed - {Intervention.RETRY} if key.is_left_behind else allowed


def stands(net: Net, state: Draft | Run) -> bool:
    """Return whether no transition clears before a person has decided about a failure."""
    return bool(left_failures(net, state))
