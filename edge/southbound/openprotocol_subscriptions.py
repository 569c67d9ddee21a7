"""Subscribes to the messages of an Open Protocol controller: results, identifiers, alarms, curves."""

import structlog

from edge.links.openprotocol_frame import MidFrame
from edge.links.openprotocol_mids import Decline, Mid
from edge.links.openprotocol_session import DeclinedError, OpenProtocolSession
from edge.links.openprotocol_trace import ANGLE, TORQUE, subscription_of
from edge.southbound.openprotocol_makes import ControllerMake

_log = structlog.get_logger(__name__)


async def subscribe(session: OpenProtocolSession, make: ControllerMake, *, several_spindles: bool = False) -> None:
    """Subscribe to results, identifiers and alarms; only results are indispensable."""
    results = (Mid.SPINDLES_SUBSCRIBE, (1,)) if several_spindles else (Mid.RESULT_SUBSCRIBE, make.result_revisions)
    wanted: list[tuple[Mid, tuple[int, ...]]] = [results]
    wanted += [(Mid.IDENTIFIER_SUBSCRIBE, (1,))] + ([(Mid.ALARM_SUBSCRIBE, (1,))] if make.alarms else [])
    for mid, revisions in wanted:
        try:
            await session.negotiate(mid, revisions)
        except DeclinedError as declined:
            if declined.error in {Decline.RESULTS_SUBSCRIBED, Decline.ALARMS_SUBSCRIBED}:
                continue
            if mid == results[0]:
                raise
            _log.info("subscription declined", reason=declined.message)


async def subscribe_to_curves(session: OpenProtocolSession) -> int:
    """Subscribe to the curves of angle and torque; return how many a result will have."""
    kinds = (ANGLE, TORQUE)
    try:
        await session.request(MidFrame(Mid.SUBSCRIBE_DATA, subscription_of(kinds)))
    except DeclinedError as declined:
        _log.warning("traces declined", reason=declined.message)
        return 0
    return len(kinds)
