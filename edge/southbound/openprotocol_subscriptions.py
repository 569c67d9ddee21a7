"""Subscribes to the messages of an Open Protocol controller: results, identifiers, alarms, curves."""

from collections.abc import Collection, Mapping
from types import MappingProxyType

import structlog

from edge.links.openprotocol_frame import MidFrame
from edge.links.openprotocol_mids import TOOL_LOCKED_RELAY, Decline, Mid, new_message, revisions_of
from edge.links.openprotocol_session import DeclinedError, OpenProtocolSession
from edge.links.openprotocol_trace import ANGLE, TORQUE, plot_subscription, subscription_of
from edge.southbound.openprotocol_makes import ControllerMake

_log = structlog.get_logger(__name__)


async def subscribe(
    session: OpenProtocolSession, make: ControllerMake, events: Collection[str] = (), *, several_spindles: bool = False
) -> None:
    """Subscribe to results, identifiers, alarms and what `events` name; only results are indispensable."""
    results = (Mid.SPINDLES_SUBSCRIBE, (1,)) if several_spindles else (Mid.RESULT_SUBSCRIBE, make.result_revisions)
    wanted: list[tuple[Mid, tuple[int, ...]]] = [results]
    wanted += [(Mid.IDENTIFIER_SUBSCRIBE, (1,))] + ([(Mid.ALARM_SUBSCRIBE, (1,))] if make.alarms else [])
    wanted += [(mid, revisions_of(reply)) for name, (mid, reply) in _SELECTIONS.items() if name in events]
    for mid, revisions in wanted:
        try:
            await session.negotiate(mid, revisions)
        except DeclinedError as declined:
            if declined.error in {Decline.RESULTS_SUBSCRIBED, Decline.ALARMS_SUBSCRIBED}:
                continue
            if mid == results[0]:
                raise
            _log.info("subscription declined", reason=declined.message)


async def subscribe_to_lock(session: OpenProtocolSession) -> None:
    """Subscribe to whether the tool is locked, whoever locked it: its state comes at once, then each change."""
    try:
        await session.request(new_message(Mid.RELAY_SUBSCRIBE, relay=TOOL_LOCKED_RELAY))
    except DeclinedError as declined:
        _log.info("tool lock not reported", reason=declined.message)


_SELECTIONS: Mapping[str, tuple[Mid, Mid]] = MappingProxyType(
    {
        "parameter_set": (Mid.PARAMETER_SET_SUBSCRIBE, Mid.PARAMETER_SET_SELECTED),
        "job": (Mid.JOB_SUBSCRIBE, Mid.JOB_INFO),
    }
)
"""By the name of the event: the subscription, and the message that it is for."""


async def subscribe_to_curves(session: OpenProtocolSession) -> int:
    """Subscribe to the curves of angle and torque; return how many a result will have."""
    kinds = (ANGLE, TORQUE)
    try:
        await session.request(MidFrame(Mid.SUBSCRIBE_DATA, subscription_of(kinds)))
    except DeclinedError as declined:
        _log.warning("traces declined", reason=declined.message)
        return 0
    try:
        await session.request(MidFrame(Mid.SUBSCRIBE_DATA, plot_subscription()))
    except DeclinedError as declined:
        _log.info("parameters of plots declined", reason=declined.message)
    return len(kinds)
