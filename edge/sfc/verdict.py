"""Evaluates the verdict of a run: whether its result is good."""

from collections.abc import Iterable, Iterator
from typing import Final

from edge.expression.value import EvaluationError, is_unknown
from edge.sfc.net import Net
from edge.sfc.run import UNSUCCESSFUL, ActionState, Association, Outcome, Run
from edge.sfc.view import RunView

OK: Final = "ok"
NOT_OK: Final = "not_ok"
NO_VERDICT: Final = ""
LONGEST_VERDICT: Final = 100
"""In characters; a longer text of a recipe is cut off."""

_DECIDED: Final = frozenset({Outcome.COMPLETED, Outcome.FAILED})
SKIPPED: Final = "skipped by "
"""Before the person and the reason, where a person skipped an action."""


def verdict_of(net: Net, run: Run, at: int) -> str:
    """Return `ok`, `not_ok` or the text of the recipe for a run that has ended; empty where nothing says it.

    The expression of the recipe is evaluated at an instant, in milliseconds since the epoch. Without one the last
    attempts decide: each has to be completed, and not skipped by a person. A run that was stopped or aborted has none,
    and one that failed is never `ok`.
    """
    if run.outcome not in _DECIDED:
        return NO_VERDICT
    verdict = _from_actions(_last_attempts(net, run)) if net.verdict is None else _from_expression(net, run, at)
    return NO_VERDICT if verdict == OK and run.outcome is Outcome.FAILED else verdict


def skipped_by(association: Association) -> str:
    """Return who skipped an action, with the reason; empty where no person did."""
    return association.resolved_by.removeprefix(SKIPPED) if _is_skipped(association) else ""


def _is_skipped(association: Association) -> bool:
    return association.resolved_by.startswith(SKIPPED)


def _from_expression(net: Net, run: Run, at: int) -> str:
    try:
        value = net.verdict.evaluate(RunView(net, run, at)) if net.verdict else None
    except EvaluationError:
        return NO_VERDICT
    if value is None or is_unknown(value):
        return NO_VERDICT
    match value:
        case bool():
            return OK if value else NOT_OK
        case str():
            return value.strip()[:LONGEST_VERDICT]
        case int() | float():
            return f"{value:g}"
        case _:
            return NO_VERDICT


def _last_attempts(net: Net, run: Run) -> Iterator[Association]:
    """Yield the newest attempt of each action that was started."""
    for actions in net.starting.values():
        started = [association for action in actions if (association := run.associations.get(action.key))]
        if started:
            yield max(started, key=lambda association: (association.attempt, association.armed_at or 0))


def _from_actions(attempts: Iterable[Association]) -> str:
    verdicts = {verdict for attempt in attempts if (verdict := _of_attempt(attempt)) is not None}
    for verdict in (NOT_OK, NO_VERDICT, OK):
        if verdict in verdicts:
            return verdict
    return NO_VERDICT


def _of_attempt(attempt: Association) -> str | None:
    """Return what an attempt says; None for one that was left unfinished on purpose, as by another path."""
    if attempt.state in UNSUCCESSFUL or _is_skipped(attempt):
        return NOT_OK
    match attempt.state:
        case ActionState.UNKNOWN:
            return NO_VERDICT
        case ActionState.COMPLETED:
            return OK
        case _:
            return None
