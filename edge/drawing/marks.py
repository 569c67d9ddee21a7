"""The marks of a run on its chart: active steps with their times, the state of each action, the waiting reasons.

Plain data, so that a chart can be drawn of a run that lives elsewhere.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from edge.foundation.text import Text, join_texts
from edge.sfc.net import Net, NetAction
from edge.sfc.run import NO_UNSENT, ActionState, Association, Run, Sending
from edge.sfc.signal import NO_MIRRORS, Mirrors
from edge.sfc.waiting import NO_HOLDERS, explain_waiting

SYMBOLS: Final = {
    ActionState.PENDING: "○",
    ActionState.DISPATCHED: "▶",
    ActionState.WAITING: "◔",
    ActionState.COMPLETED: "✓",
    ActionState.FAILED: "✗",
    ActionState.TIMED_OUT: "⊗",
    ActionState.STOPPED: "■",
    ActionState.UNKNOWN: "?",
}
"""Symbols distinguish the states without colour."""


class StepMark(Struct, frozen=True):
    """A step that was active at least once; `elapsed_ms` is its T. A step with a `fault` of the recipe has no times."""

    active: bool
    elapsed_ms: int
    count: int
    fault: bool = False


class ActionMark(Struct, frozen=True):
    """An action that was activated at least once; `elapsed_ms` from sending to the end, or until now.

    `sending` says whether its command is known to have left the gateway.
    """

    state: ActionState
    attempt: int
    elapsed_ms: int | None
    stored: bool
    sending: Sending = Sending.SENT

    @property
    def text(self) -> Text:
        """Return the state for people."""
        return self.state.text if self.sending is Sending.SENT else self.sending.text


class Marks(Struct, frozen=True):
    """A run at an instant. Actions are keyed by number in the recipe; `waiting` holds the reasons for the wait.

    An ended run has no waiting reasons: the title holds its outcome.
    """

    title: str | Text
    steps: dict[str, StepMark]
    actions: dict[int, ActionMark]
    waiting: tuple[str | Text, ...]


def marks_of(
    net: Net,
    run: Run,
    now: int,
    holders: Mapping[str, Text] = NO_HOLDERS,
    mirrors: Mirrors = NO_MIRRORS,
    unsent: Mapping[str, Sending] = NO_UNSENT,
) -> Marks:
    """Return the marks of a run at an instant, in milliseconds; a pause or the end of the run stops its clocks.

    `unsent` are the commands that are not known as sent.
    """
    halted = run.ended_at if run.ended_at is not None else run.paused_at
    at = now if halted is None else min(now, halted)
    # The last steps stay active in a run that has ended: nothing is at work there any more.
    steps = {
        name: StepMark(state.active and not run.ended, state.t(at), state.count)
        for name, state in run.steps.items()
        if state.count
    }
    actions = {
        action.index: _mark(run, action, association, at, unsent)
        for key, action in net.actions.items()
        if (association := run.associations.get(key)) is not None
    }
    waiting = () if run.ended else tuple(wait.text for wait in explain_waiting(net, run, now, holders, mirrors, unsent))
    return Marks(_title(run, at), steps, actions, waiting)


def _mark(run: Run, action: NetAction, association: Association, at: int, unsent: Mapping[str, Sending]) -> ActionMark:
    since = association.armed_at
    until = at if association.ended_at is None else association.ended_at
    return ActionMark(
        state=association.state,
        attempt=association.attempt,
        elapsed_ms=None if since is None else max(0, until - since),
        stored=run.stored.get(action.name) == action.key,
        sending=unsent.get(association.command_id, Sending.SENT),
    )


def _title(run: Run, at: int) -> Text:
    if run.started_at is None:
        return Text.of("job {job} in {scope}: not started", job=run.job_id, scope=run.scope)
    title = Text.of(
        "job {job} in {scope}: {outcome} after {duration}",
        job=run.job_id,
        scope=run.scope,
        outcome=Text.of("paused") if run.paused and not run.ended else run.outcome.text,
        duration=duration(at - run.started_at),
    )
    return join_texts(": ", (title, run.error)) if run.ended and run.error else title


_MINUTES_FROM_S: Final = 100
"""A longer time is read in minutes."""


def duration(milliseconds: int) -> str:
    """Return a duration as text for people."""
    seconds = milliseconds / 1000
    if seconds < _MINUTES_FROM_S:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"
