"""Chooses the replicas that a planned switch-over may promote, by the state of the store."""

from collections.abc import Sequence
from typing import Final

from edge.foundation.errors import Refused
from edge.store.store_state import ReplicaState, StoreState, lag_text

KIND: Final = "switch_over"
FIRST_PRIORITY: Final = 1
"""Sentinel prefers a replica of this priority to any other."""
_MOST_MISSING_BYTES: Final = 1_000_000
"""What a replica may lack: with more, the pause of the writes would last."""
_STATUS: Final = "See: edge store status"
_REPAIR: Final = f"Repair it, or name another replica with --to. {_STATUS}"


class NotAnswering(Refused):
    """A replica that does not answer: where Sentinel just made it one, its connections were cut once."""

    def __init__(self, address: str, error: str) -> None:
        super().__init__(KIND, f"the replica {address} does not answer: {error}.", _REPAIR)


class NotLinked(Refused):
    """A replica has no link to the primary now; it may have one soon."""

    def __init__(self, address: str) -> None:
        super().__init__(KIND, f"the replica {address} has no link to the primary.", _REPAIR)
        self.address = address


def candidates_of(state: StoreState, to: str) -> Sequence[ReplicaState]:
    """Return the replicas that Sentinel may promote: only `to` where it is given.

    Raises Refused when the primary cannot be changed now without a loss; nothing was changed then.
    """
    if state.fence is None:
        raise Refused(KIND, "[redis] url names a single server.", "A switch-over needs a replica and Sentinel.")
    if state.fence.reason or state.primary is None or state.primary.error:
        reason = state.fence.reason or (state.primary.error if state.primary else "no primary is known")
        raise Refused(KIND, f"the primary is not confirmed: {reason}.", f"Repair the line first. {_STATUS}")
    if to and to == state.primary.address:
        raise Refused(KIND, f"{to} is the primary already.", _STATUS)
    promotable = [replica for replica in state.replicas if replica.priority > 0]
    if to and to not in {replica_state.address for replica_state in promotable}:
        names = ", ".join(replica_state.address for replica_state in promotable) or "none"
        raise Refused(KIND, f"{to} is not a replica that can be promoted.", f"Those that can: {names}. {_STATUS}")
    wanted = [replica_state for replica_state in promotable if not to or replica_state.address == to]
    if not wanted:
        raise Refused(KIND, "no replica can be promoted.", f"Start a replica with a priority above 0. {_STATUS}")
    for item in wanted:
        if item.error:
            raise NotAnswering(item.address, item.error)
        if reason := _obstacle(item, needs_aof=state.durability != "any"):
            raise Refused(KIND, f"the replica {item.address} {reason}.", _REPAIR)
    for element in wanted:
        if not element.is_linked or element.is_down:
            raise NotLinked(element.address)
    if to and any(
        replica_state.priority <= FIRST_PRIORITY for replica_state in promotable if replica_state.address != to
    ):
        advice = "Raise `replica-priority` of the others, then wait ten seconds."
        raise Refused(KIND, f"Sentinel would prefer a replica of priority {FIRST_PRIORITY} to {to}.", advice)
    return wanted


def _obstacle(replica: ReplicaState, *, needs_aof: bool) -> str:
    # Of a former primary, until it is a replica, the offset is that of another history.
    if replica.is_linked and (replica.lag_bytes or 0) > _MOST_MISSING_BYTES:
        return f"lags behind by {lag_text(replica)}"
    return "keeps no append-only file" if needs_aof and not replica.has_aof else ""
