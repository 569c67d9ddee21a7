"""Opens a connection to an Open Protocol controller: results first, optional exchanges in the background."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeVar

import structlog

from edge.equipment.remembered_text import RememberedText
from edge.features.openprotocol.makes import ControllerMake
from edge.features.openprotocol.messages import described
from edge.features.openprotocol.programs import ParameterSets
from edge.features.openprotocol.protocol.frame import MidFrame
from edge.features.openprotocol.protocol.mids import TOOL_LOCKED_RELAY, Decline, Mid, new_message, revisions_of
from edge.features.openprotocol.protocol.revisions import Revisions, decode_revisions, encode_revisions
from edge.features.openprotocol.protocol.session import DeclinedError, OpenProtocolSession
from edge.features.openprotocol.protocol.trace import ANGLE, TORQUE, plot_subscription, subscription_of
from edge.features.openprotocol.settings import OpenProtocolSettings
from edge.features.openprotocol.tool import TighteningTool
from edge.foundation.listeners import ChangeSignal

LEARNT_REVISIONS = "revisions"
"""The name of the text with the learnt revisions."""


class LearntRevisions:
    """Reads the revisions of a controller once, and writes them when they have changed."""

    def __init__(self, settings: OpenProtocolSettings, memory: RememberedText) -> None:
        self._fixed = {int(mid): revision for mid, revision in settings.revisions.items()}
        self._memory = memory
        self._revisions: Revisions | None = None

    async def load(self) -> Revisions:
        """Return the revisions, the same for each connection; raises Unavailable without the store."""
        if self._revisions is None:
            self._revisions = Revisions(self._fixed, decode_revisions(await self._memory.recall()))
        return self._revisions

    async def save(self) -> None:
        """Write what was learnt since; without the store, on a later connection."""
        if self._revisions is not None:
            await self._memory.write(encode_revisions(self._revisions.learnt))


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


GRACE_SECONDS: Final = 0.5
"""The seconds that an urgent request waits for the answer to an optional one."""

_T = TypeVar("_T")


class OptionalExchanges:
    """Runs exchanges that the gateway can do without while no urgent one waits."""

    def __init__(self, grace_s: float = GRACE_SECONDS) -> None:
        self._grace_s = grace_s
        self._urgent = 0
        self._changed = ChangeSignal()

    @contextmanager
    def urgent(self) -> Iterator[None]:
        """Hold back the optional exchanges for the length of the block."""
        self._urgent += 1
        self._changed.set()
        try:
            yield
        finally:
            self._urgent -= 1
            self._changed.set()

    async def run(self, exchange: Callable[[], Awaitable[_T]]) -> _T:
        """Return the result of an exchange; one that is not answered while an urgent one waits is repeated later."""
        while True:
            await self._changed.wait_until(lambda: not self._urgent, None)
            task = asyncio.ensure_future(exchange())
            if await self._completes(task):
                return task.result()

    async def _completes(self, task: asyncio.Future[Any]) -> bool:
        """Return whether an exchange ends before an urgent one has waited for it too long; it is cancelled then."""
        task.add_done_callback(lambda _: self._changed.set())
        try:
            await self._changed.wait_until(lambda: task.done() or self._urgent > 0, None)
            await asyncio.wait((task,), timeout=self._grace_s)
            return task.done()
        finally:
            task.cancel()
            await asyncio.wait((task,))


class ControllerOpening:
    """The exchanges at the beginning of a connection.

    `subscribe` is the first, `subscribe_to_curves` the last that a command waits for; `run` does all others.
    """

    def __init__(
        self,
        session: OpenProtocolSession,
        make: ControllerMake,
        settings: OpenProtocolSettings,
        tool: TighteningTool,
        programs: ParameterSets,
        learnt: LearntRevisions,
        now: Callable[[], datetime],
    ) -> None:
        self._session = session
        self._make = make
        self._settings = settings
        self._tool = tool
        self._programs = programs
        self._learnt = learnt
        self._now = now
        self._optional = OptionalExchanges()
        self.is_complete = asyncio.Event()
        """Set when the results and the curves are subscribed to, and the latest result was requested."""
        self.urgent = self._optional.urgent
        self.curve_kinds = 0
        """How many curves each result has."""

    async def subscribe(self) -> None:
        """Subscribe to the results; raises Refused when the controller declines."""
        await subscribe_to_results(self._session, self._make, self._settings)
        await self._learnt.save()

    async def subscribe_to_curves(self) -> None:
        """Subscribe to the curves if the settings say so: without it the first bolt has none. `run` begins then."""
        if self._settings.traces == "on":
            self.curve_kinds = await subscribe_to_curves(self._session)
        self.is_complete.set()

    async def run(self) -> None:
        """Request what the gateway can do without, after the results and the curves. Raises Unavailable."""
        await self.is_complete.wait()
        run = self._optional.run
        for subscription in optional_subscriptions(self._session, self._make, self._settings):
            await run(subscription)
        if self._settings.clock == "set":
            await run(lambda: self._tool.set_clock(self._now()))
        serial = await run(self._tool.read)
        _log.info("controller identified", make=self._make.name, **described(self._session), tool=serial)
        await self._programs.read(run)
        await self._learnt.save()
