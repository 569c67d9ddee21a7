"""Confirms that the primary of a store is still the primary: a majority of the sentinels vouches for a short time.

A sentinel may elect another primary only when a majority sees this one down. One that has heard the primary within its
`down-after` period does not see it down before that period ends: until then it vouches. See
`docs/explanation/high-availability.md`.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from typing import Final

import structlog
from msgspec import Struct

from edge.foundation.errors import Unavailable
from edge.foundation.text import Text, join_texts
from edge.store.sentinels import ASK_EVERY_S, Primary, Sentinels, SentinelView, TakeView, agreed

logger = structlog.get_logger(__name__)

MARGIN_S: Final = 0.5
"""Taken off each confirmation: the time in which a command that was sent reaches the server."""
_FORGOTTEN_AFTER_S = 300.0
_NOTED_WITHIN_S: Final = 3.0
"""Gateways commit within this time after a break what they could not commit in it: they retry each second."""
REPLACED_AFTER_S: Final = 10.0
_ADVICE = "Work continues when a majority of the sentinels confirms the primary. See: edge store status"
_FAILOVER = ("o_down", "failover_in_progress")


class Confirmed(Struct, frozen=True):
    """The sentinel does not see the primary down before `until`, an instant of the event loop."""

    until: float


class Doubt(Struct, frozen=True):
    """The sentinel cannot vouch for the primary; others may."""

    reason: Text


class Veto(Struct, frozen=True):
    """The sentinel knows of a failover that has begun: no commit until it answers otherwise, or `until`."""

    reason: Text
    until: float


class Superseded(Struct, frozen=True):
    """The sentinel knows of a later failover: the primary will not return."""

    reason: Text


Judgement = Confirmed | Doubt | Veto | Superseded


def judge(view: SentinelView, primary: Primary, sent_at: float) -> Judgement:
    """Return what the view of a sentinel, asked at `sent_at`, says of our primary.

    `s_down` is a doubt and not a veto: one sentinel that is cut off from the primary can start nothing as long as a
    majority vouches for it.
    """
    theirs = view.primary
    if theirs.config_epoch > primary.config_epoch:
        return Superseded(
            Text.of(
                "a failover has made {successor} the primary instead of {primary}", successor=theirs, primary=primary
            )
        )
    if theirs != primary:
        return Doubt(Text.of("a sentinel still names {other}, not {primary}", other=theirs, primary=primary))
    if not view.is_watched:
        # It has promoted this primary and ends that failover now; until then, and for a whole period after, it starts
        # no other one.
        return Confirmed(sent_at + view.down_after_s - MARGIN_S)
    if begun := [flag for flag in _FAILOVER if flag in view.flags]:
        reason = Text.of("a failover of {primary} has begun ({flags})", primary=primary, flags=", ".join(begun))
        return Veto(reason, sent_at + view.failover_timeout_s)
    if "s_down" in view.flags:
        return Doubt(Text.of("a sentinel does not reach {primary}", primary=primary))
    # Negative while the clock of the sentinel's host has been set back.
    return Confirmed(sent_at + view.down_after_s - max(view.last_ok_ping_s, 0.0) - MARGIN_S)


def confirmed_until(judgements: Collection[Judgement], majority: int, now: float) -> float:
    """Return until when a majority confirms the primary; minus infinity when it does not, or with a veto."""
    if any(
        isinstance(judgement, Superseded) or (isinstance(judgement, Veto) and judgement.until > now)
        for judgement in judgements
    ):
        return float("-inf")
    instants = sorted((judgement.until for judgement in judgements if isinstance(judgement, Confirmed)), reverse=True)
    return instants[majority - 1] if len(instants) >= majority else float("-inf")


def find_successor(views: Collection[SentinelView], primary: Primary, unconfirmed_s: float = 0.0) -> Primary | None:
    """Return the primary that has replaced ours, else None: that of a later failover, at once.

    A majority that names one of an earlier failover has not heard of the latest one yet. But when it still does after
    `unconfirmed_s`, a person has removed the service from the sentinels and added it again.
    """
    latest = agreed(views)
    if latest is None or latest == primary:
        return None
    if latest.config_epoch > primary.config_epoch:
        return latest
    others = sum(view.primary != primary for view in views)
    is_lasting = unconfirmed_s > REPLACED_AFTER_S and others >= max(view.majority for view in views)
    return latest if is_lasting else None


class _Heard(Struct, frozen=True):
    """The last answer of a sentinel."""

    view: SentinelView
    judgement: Judgement
    sent_at: float


class Fence:
    """The latest judgement of each sentinel. Nothing may be committed or started while it does not confirm.

    Times are instants of the event loop.
    """

    def __init__(self, primary: Primary, clock: Callable[[], float]) -> None:
        self.primary = primary
        self.successor: Primary | None = None
        """The primary that has replaced ours."""
        self.replaced = asyncio.Event()
        """Set when there is a successor."""
        self._clock = clock
        self._heard: dict[str, _Heard] = {}
        self._until = float("-inf")
        self._confirmed_at = clock()
        self._changed = asyncio.Event()
        self._was_confirmed: bool | None = None
        self._broken_at = float("-inf")

    @property
    def is_confirmed(self) -> bool:
        """Whether a majority confirms the primary now."""
        return self._clock() < self._until

    @property
    def may_lack_notes(self) -> bool:
        """Whether what gateways did last may not be committed yet: in a break of the confirmation, and just after."""
        return not self.is_confirmed or self._clock() < self._broken_at + _NOTED_WITHIN_S

    def note_break(self) -> None:
        """Record that until now nothing could be committed."""
        self._broken_at = self._clock()

    @property
    def confirmed_s(self) -> float:
        """For how many seconds a majority confirms the primary; 0 when it does not."""
        return max(0.0, self._until - self._clock())

    @property
    def reason(self) -> str | Text:
        """Why the primary is not confirmed; empty while it is."""
        if self.is_confirmed:
            return ""
        judgements = [heard.judgement for heard in self._heard.values()]
        reasons = sorted(
            {judgement.reason for judgement in judgements if not isinstance(judgement, Confirmed)}, key=str
        )
        if reasons:
            return join_texts("; ", reasons)
        return Text.of("no majority of the sentinels confirms {primary}", primary=self.primary)

    def require(self) -> None:
        """Raise Unavailable unless a majority confirms the primary now."""
        if not self.is_confirmed:
            raise self.unavailable()

    def unavailable(self) -> Unavailable:
        """Return the error while the primary is not confirmed."""
        return Unavailable(Text.of("the primary of the store is not confirmed: {reason}", reason=self.reason), _ADVICE)

    def take(self, view: SentinelView, sent_at: float) -> None:
        """Take the view of a sentinel that was asked at `sent_at`."""
        if self._was_confirmed is not None and not self.is_confirmed:
            self.note_break()
        self._heard[view.sentinel_id] = _Heard(view, judge(view, self.primary, sent_at), sent_at)
        # A sentinel that is silent for long counts in the views of the others, or not any more.
        self._heard = {
            name: heard for name, heard in self._heard.items() if sent_at - heard.sent_at < _FORGOTTEN_AFTER_S
        }
        views = [heard.view for heard in self._heard.values()]
        majority = max(sentinel_view.majority for sentinel_view in views)
        self._until = confirmed_until([heard.judgement for heard in self._heard.values()], majority, self._clock())
        self._changed.set()
        self.report()
        if self.is_confirmed:
            self._confirmed_at = self._clock()
        unconfirmed_s = self._clock() - self._confirmed_at
        if self.successor is None and (other := find_successor(views, self.primary, unconfirmed_s)):
            self.successor = other
            self.replaced.set()

    async def wait(self, within_s: float) -> None:
        """Wait until a majority confirms the primary. Raises Unavailable when it does not in time, or is replaced."""
        try:
            async with asyncio.timeout(within_s):
                while not self.is_confirmed:
                    if self.successor:
                        raise self.unavailable()
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise self.unavailable() from None

    def report(self) -> None:
        """Log when the primary is no longer confirmed, and when it is again."""
        before, now = self._was_confirmed, self.is_confirmed
        if now and before is False:
            logger.info("primary confirmed again", primary=str(self.primary))
        elif before and not now:
            logger.warning("primary not confirmed, work waits", primary=str(self.primary), reason=str(self.reason))
        if now or before:
            self._was_confirmed = now


async def ask_fence(ask: Callable[[TakeView], Awaitable[object]]) -> Fence:
    """Query the sentinels once; return the fence of the primary by their answers. Raises Unavailable without any.

    fence = await ask_fence(sentinels.refresh)
    """
    heard: list[tuple[SentinelView, float]] = []
    await ask(lambda *value: heard.append(value))
    primary = agreed(view for view, _ in heard)
    if primary is None:
        raise Unavailable("no sentinel answers", "Start the sentinels, or correct [redis] url.")
    fence = Fence(primary, asyncio.get_running_loop().time)
    for view, sent_at in heard:
        fence.take(view, sent_at)
    return fence


@contextlib.asynccontextmanager
async def watched(sentinels: Sentinels, fence: Fence, every_s: float = ASK_EVERY_S) -> AsyncIterator[None]:
    """Query the sentinels at this interval in seconds for the length of the block; the fence takes their answers."""
    task = asyncio.create_task(sentinels.watch(fence.take, every_s), name="watch sentinels")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))


def quorum_advice(service: str, majority: int) -> Text:
    """Return how to correct the quorum of a service, as a command of the sentinels."""
    return Text.of(
        "Correct it on every sentinel: SENTINEL SET {service} quorum {majority}", service=service, majority=majority
    )


def quorum_problem(views: Iterable[SentinelView]) -> Text | None:
    """Return why a failover could start although a majority vouches for the primary; None when it cannot."""
    for view in views:
        if view.quorum < view.majority:
            return Text.of(
                "a sentinel fails over with a quorum of {quorum} of {count} sentinels, expected at least {majority}",
                quorum=view.quorum,
                count=view.sentinels,
                majority=view.majority,
            )
    return None
