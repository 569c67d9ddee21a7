"""Subscribes to the messages of an Open Protocol controller: results, identifiers, alarms, curves."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import structlog

from edge.features.openprotocol.makes import ControllerMake
from edge.features.openprotocol.protocol.errors import DeclinedError
from edge.features.openprotocol.protocol.frame import MidFrame
from edge.features.openprotocol.protocol.mids import TOOL_LOCKED_RELAY, Decline, Mid, new_message, revisions_of
from edge.features.openprotocol.protocol.session import OpenProtocolSession
from edge.features.openprotocol.protocol.trace import ANGLE, TORQUE, plot_subscription, subscription_of
from edge.features.openprotocol.settings import OpenProtocolSettings

_log = structlog.get_logger(__name__)


async def subscribe_to_results(
    session: OpenProtocolSession, make: ControllerMake, settings: OpenProtocolSettings
) -> None:
    """Subscribe to results; raises Refused when the controller declines."""
    mid, revisions = Mid.RESULT_SUBSCRIBE, make.result_revisions
    if settings.spindles == "several":
        mid, revisions = Mid.SPINDLES_SUBSCRIBE, (1,)
    try:
        await session.negotiate(mid, revisions)
    except DeclinedError as declined:
        if declined.error not in _SUBSCRIBED:
            raise


def optional_subscriptions(
    session: OpenProtocolSession, make: ControllerMake, settings: OpenProtocolSettings
) -> Sequence[Callable[[], Awaitable[object]]]:
    """Return the subscriptions that the settings ask for and the gateway can do without, each as a call."""
    calls: list[Callable[[], Awaitable[object]]] = [partial(session.inquire, MidFrame(Mid.IDENTIFIER_SUBSCRIBE))]
    if make.alarms:
        calls.append(partial(session.inquire, MidFrame(Mid.ALARM_SUBSCRIBE)))
    for name, (selection, reply) in _SELECTIONS.items():
        if name in settings.events:
            calls.append(partial(session.inquire_newest, selection, revisions_of(reply)))
    if make.reports_lock and settings.lock == "on":
        # The controller reports the state of the lock at once, then each change, whichever client locks the tool.
        calls.append(partial(session.inquire, new_message(Mid.RELAY_SUBSCRIBE, relay=TOOL_LOCKED_RELAY)))
    return calls


_SELECTIONS: Mapping[str, tuple[Mid, Mid]] = MappingProxyType(
    {
        "parameter_set": (Mid.PARAMETER_SET_SUBSCRIBE, Mid.PARAMETER_SET_SELECTED),
        "job": (Mid.JOB_SUBSCRIBE, Mid.JOB_INFO),
    }
)
"""By the name of the event: the subscription, and the message that it is for."""


_SUBSCRIBED = frozenset({Decline.RESULTS_SUBSCRIBED, Decline.SPINDLES_SUBSCRIBED})


async def subscribe_to_curves(session: OpenProtocolSession) -> int:
    """Subscribe to the curves of angle and torque; return how many a result will have, 0 where there are none."""
    kinds = (ANGLE, TORQUE)
    if await session.inquire(MidFrame(Mid.SUBSCRIBE_DATA, subscription_of(kinds))) is None:
        _log.warning("traces not available")
        return 0
    await session.inquire(MidFrame(Mid.SUBSCRIBE_DATA, plot_subscription()))
    return len(kinds)
