"""What past jobs show about a draft: what they would have done, and the values that its conditions had.

Their recorded signals are repeated, nothing is sent. All of it takes work: the workbench does it for a gateway.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from edge.expression.compiler import Unmet
from edge.expression.syntax import ExpressionSyntaxError
from edge.expression.value import Evaluate, EvaluationError, is_unknown, show
from edge.foundation.errors import Defect, Refused
from edge.foundation.text import Text, join_texts
from edge.model.recipe import Recipe
from edge.sfc.advance import advance
from edge.sfc.condition import ACTION_PROPERTIES, STEP_PROPERTIES, Names, compile_condition
from edge.sfc.net import Net
from edge.sfc.run import ActionState, Run, new_run
from edge.sfc.signal import Advanced
from edge.sfc.view import RunView
from edge.station.public_history import PublicChanges, public_changes, signal_text
from edge.station.stored_job import NotRecorded, RecordedRun, recorded_of_documents, replay_recorded
from edge.store.archive_backlog import JobDocuments
from edge.store.runs import read_run
from edge.store.version import DocumentTooNew

_MOST_SEEN: Final = 5
_MOST_ITEMS: Final = 8


class FirstDifference(Struct, frozen=True, kw_only=True):
    """The first decision that a draft takes otherwise: its number, its signal, and what changed then and would now.

    `replayed` is null where the draft ignores the signal, `ignored` says why. `then` and `now` say both in words.
    """

    number: int
    signal: str
    recorded: PublicChanges
    replayed: PublicChanges | None
    ignored: str
    then: str
    now: str


class ReplayedJob(Struct, frozen=True, kw_only=True):
    """A job with a draft; `first` is None where every decision is the same. `reason` is why it cannot be replayed."""

    job_order_id: str
    decisions: int = 0
    differences: int = 0
    first: FirstDifference | None = None
    reason: str = ""


class DraftReplay(Struct, frozen=True, kw_only=True):
    """What the newest jobs would have done with a draft, the newest first.

    An answer may have a part of them: `next` is the place of the rest, null at the end, `total` the number of all.
    """

    total: int
    next: str | None
    same: int
    different: int
    not_replayed: int
    jobs: tuple[ReplayedJob, ...]


def replay_of(jobs: Sequence[ReplayedJob], total: int, following: str | None = None) -> DraftReplay:
    """Return replayed jobs with their numbers."""
    return DraftReplay(
        total=total,
        next=following,
        same=sum(not job.reason and not job.differences for job in jobs),
        different=sum(bool(job.differences) for job in jobs),
        not_replayed=sum(bool(job.reason) for job in jobs),
        jobs=tuple(jobs),
    )


class ConditionValue(Struct, frozen=True, kw_only=True):
    """The value that a condition had in a job when its step was left, or last; empty where it was never active.

    `unmet` are its parts that were not true, each with the values of its names.
    """

    job_order_id: str
    value: str
    unmet: Mapping[str, str]


class ConditionValues(Struct, frozen=True, kw_only=True):
    """The values of a condition in the newest jobs, the newest first."""

    values: tuple[ConditionValue, ...]


def replayed_job(job_id: str, documents: JobDocuments | None, net: Net, language: str) -> ReplayedJob:
    """Return what a job would have done with another recipe."""
    recorded = NotRecorded("the job is gone") if documents is None else recorded_of_documents(documents)
    result = recorded if isinstance(recorded, NotRecorded) else replay_recorded(recorded, net)
    if isinstance(result, NotRecorded):
        return ReplayedJob(job_order_id=job_id, reason=result.reason)
    first = None
    if result.differences:
        item = result.differences[0]
        recorded_changes, repeated = public_changes(item.record.changes), public_changes(item.repeated)
        now = Text.of("ignored, {reason}", reason=item.ignored) if item.ignored else _changes_text(repeated)
        first = FirstDifference(
            number=item.record.number,
            signal=signal_text(item.record.signal).in_language(language),
            recorded=recorded_changes,
            replayed=None if item.ignored else repeated,
            ignored=item.ignored,
            then=_changes_text(recorded_changes).in_language(language),
            now=now.in_language(language),
        )
    return ReplayedJob(
        job_order_id=job_id, decisions=result.decisions, differences=len(result.differences), first=first
    )


def _changes_text(changes: PublicChanges) -> Text:
    parts = [
        Text.of("{action} {state}", action=change.action, state=ActionState(change.state).text)
        for change in changes.actions
        if change.state
    ]
    parts += [Text.of("leaves {step}", step=step) for step in changes.left]
    parts += [Text.of("enters {step}", step=step) for step in changes.entered]
    return join_texts(", ", parts) if parts else Text.of("nothing changes")


def condition_value(job_id: str, documents: JobDocuments, text: str, step: str) -> ConditionValue | None:
    """Return the value of a condition in a job while a step was active; without a step at the last decision.

    None for a job whose decisions are not recorded. Raises Refused for a condition that its recipe cannot have.
    """
    recorded = recorded_of_documents(documents)
    if isinstance(recorded, NotRecorded):
        return None
    try:
        condition = compile_condition(text, _names(recorded.net))
    except ExpressionSyntaxError as error:
        reason = Text.of("the condition cannot be read: {fault}", fault=error)
        raise Refused("invalid_condition", reason) from error
    last: tuple[str, Mapping[str, str]] = ("", {})
    for view, was_active in _views(recorded, step):
        if was_active or not step:
            last = _evaluated(condition.evaluate, view), _unmet(condition.explain(view))
    value, unmet = last
    return ConditionValue(job_order_id=job_id, value=value, unmet=unmet)


def _names(net: Net) -> Names:
    keys: dict[str, tuple[Any, ...]] = {}
    for action in net.actions.values():
        keys[action.name] = (*keys.get(action.name, ()), action.key)
    return Names(frozenset(net.steps), keys)


def _views(recorded: RecordedRun, step: str) -> Iterator[tuple[RunView, bool]]:
    """Yield the run after each recorded decision, and whether the step was active before or after it."""
    stored = recorded.stored.run
    run = new_run(stored.job_id, stored.scope, stored.run_id, stored.parameters)
    run = replace(run, early=dict(enumerate(recorded.records[0].early, 1)))
    for record in recorded.records:
        was_active = step in run.active
        decided = advance(recorded.net, run, record.signal, record.at, record.mirrors)
        if isinstance(decided, Advanced):
            run = decided.run
        yield RunView(recorded.net, run, record.at, record.mirrors), was_active or step in run.active


def _evaluated(evaluate: Evaluate, view: RunView) -> str:
    try:
        value = evaluate(view)
    except EvaluationError as error:
        return str(error)
    return "unknown" if is_unknown(value) else show(value)


def _unmet(parts: Sequence[Unmet]) -> dict[str, str]:
    return {str(part.text): str(part.because) for part in parts}


class OfferedName(Struct, frozen=True, kw_only=True):
    """A name that a condition may have: `kind` is `step`, `action`, `result`, `variable`, `job` or `mirror`.

    `seen` are values that past jobs had, the newest first.
    """

    name: str
    kind: str
    seen: tuple[str, ...] = ()


class PastNames(Struct, frozen=True, kw_only=True):
    """The values that past jobs had, the newest first: of variables by name, of results by action and path."""

    variables: Mapping[str, tuple[str, ...]] = {}
    results: Mapping[str, Mapping[str, tuple[str, ...]]] = {}


class OfferedNames(Struct, frozen=True, kw_only=True):
    """The names that conditions of a draft may have."""

    names: tuple[OfferedName, ...]


def names_of_job(documents: JobDocuments) -> PastNames:
    """Return the values that a past job had."""
    run = _run_of(documents)
    results: dict[str, dict[str, tuple[str, ...]]] = {}
    for key, association in run.associations.items() if run else ():
        for path, value in _members(association.result):
            results.setdefault(key.action, {})[path] = (show(value),)
    return PastNames(
        variables={name: (show(value),) for name, value in run.variables.items()} if run else {}, results=results
    )


def merged_names(jobs: Iterable[PastNames]) -> PastNames:
    """Return the values of several jobs, the newest first."""
    variables: dict[str, tuple[str, ...]] = {}
    results: dict[str, dict[str, tuple[str, ...]]] = {}
    for job in jobs:
        _add(variables, job.variables)
        for action, paths in job.results.items():
            _add(results.setdefault(action, {}), paths)
    return PastNames(variables=variables, results=results)


def _add(seen: dict[str, tuple[str, ...]], values: Mapping[str, tuple[str, ...]]) -> None:
    for name, found in values.items():
        seen[name] = tuple(dict.fromkeys((*seen.get(name, ()), *found)))[:_MOST_SEEN]


def offered_names(recipe: Recipe, past: PastNames, parameters: Iterable[str], mirrors: Iterable[str]) -> OfferedNames:
    """Return the names of a recipe, of the results and variables of past jobs, of order parameters and mirrors.

    A mirrored set stands behind `in`, as in `carrier in mirrors.carriers`. Tags are not among them: conditions of
    recipes have no form for them, a recorded decision could not be repeated.
    """
    steps = [f"steps.{step.name}.{part}" for step in recipe.steps for part in STEP_PROPERTIES]
    actions = dict.fromkeys(action.name for action in recipe.actions)
    states = [f"actions.{name}.{part}" for name in actions for part in ACTION_PROPERTIES if part != "result"]
    results = {
        f"actions.{name}.result{path}": seen for name in actions for path, seen in past.results.get(name, {}).items()
    }
    variables = {**dict.fromkeys(parameters, tuple[str, ...]()), **past.variables}
    job = [f"job.{part}" for part in ("id", "scope")] + [f"job.parameters.{name}" for name in parameters]
    sets = [name for mirror in mirrors for name in (f"mirrors.{mirror}", f"mirrors.{mirror}.stale")]
    return OfferedNames(
        names=(
            *(OfferedName(name=name, kind="action") for name in states),
            *(OfferedName(name=name, kind="result", seen=seen) for name, seen in sorted(results.items())),
            *(OfferedName(name=name, kind="variable", seen=seen) for name, seen in sorted(variables.items())),
            *(OfferedName(name=name, kind="step") for name in steps),
            *(OfferedName(name=name, kind="job") for name in job),
            *(OfferedName(name=name, kind="mirror") for name in sets),
        )
    )


def _run_of(documents: JobDocuments) -> Run | None:
    """Return the run that documents state; None where it cannot be read."""
    try:
        return read_run(documents.run, "").run if documents.run else None
    except (Defect, DocumentTooNew, KeyError, ValueError):
        return None


def _members(result: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield the members of a result that conditions can compare, with their paths."""
    match result:
        case dict():
            for name, value in result.items():
                if str(name).isidentifier():
                    yield from _members(value, f"{path}.{name}")
        case list():
            for number, value in enumerate(result[:_MOST_ITEMS]):
                yield from _members(value, f"{path}[{number}]")
        case str() | int() | float():
            yield path, result
        case _:
            pass
