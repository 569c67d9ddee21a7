"""What past jobs show about a draft: what they would have done, and the values that its conditions had.

Jobs are those of the store and of the archive; their recorded signals are repeated, nothing is sent.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from edge.app.features import archived_runs
from edge.config import Settings
from edge.expression.compiler import Unmet
from edge.expression.syntax import ExpressionSyntaxError
from edge.expression.value import Evaluate, EvaluationError, is_unknown, show
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.foundation.ticks import REST_S
from edge.model.recipe import Recipe
from edge.sfc.advance import advance
from edge.sfc.condition import ACTION_PROPERTIES, STEP_PROPERTIES, Names, compile_condition
from edge.sfc.net import Net
from edge.sfc.run import new_run
from edge.sfc.signal import Advanced
from edge.sfc.view import RunView
from edge.station.public_history import PublicChanges, public_changes, signal_text
from edge.station.stored_job import NotRecorded, RecordedRun, load_recorded, replay_recorded
from edge.store.client import Store
from edge.store.jobs import load_all

MOST_REPLAYED: Final = 100
"""The jobs that are replayed against a draft; the values of conditions are those of the last ten."""
MOST_SHOWN: Final = 10
_MOST_SEEN: Final = 5
_MOST_ITEMS: Final = 8


PastRuns: TypeAlias = Sequence[tuple[str, RecordedRun | NotRecorded]]
"""Jobs with their recorded runs."""


class FirstDifference(Struct, frozen=True, kw_only=True):
    """The first decision that a draft takes otherwise: its number, its signal, and what changed then and would now.

    `replayed` is null where the draft ignores the signal, `ignored` says why.
    """

    number: int
    signal: str
    recorded: PublicChanges
    replayed: PublicChanges | None
    ignored: str


class ReplayedJob(Struct, frozen=True, kw_only=True):
    """A job with a draft; `first` is None where every decision is the same. `reason` is why it cannot be replayed."""

    job_order_id: str
    decisions: int = 0
    differences: int = 0
    first: FirstDifference | None = None
    reason: str = ""


class DraftReplay(Struct, frozen=True, kw_only=True):
    """What the newest jobs would have done with a draft, the newest first."""

    same: int
    different: int
    not_replayed: int
    jobs: tuple[ReplayedJob, ...]


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


async def newest_runs(store: Store, settings: Settings, scope: str, work_master: str, most: int) -> PastRuns:
    """Return the newest jobs of a Work Master that have started, each with its id; one of store and archive is one."""
    jobs = [
        job
        for job in await load_all(store, scope)
        if job.started_at is not None and any(master.id == work_master for master in job.order.work_master_id or ())
    ]
    newest = sorted(jobs, key=lambda job: -(job.started_at or 0))[:most]
    found: dict[str, tuple[int, str, RecordedRun | NotRecorded]] = {}
    for job in newest:
        recorded = await load_recorded(store, job.job_id, rest_s=REST_S)
        found[job.correlation_id] = (job.started_at or 0, job.job_id, recorded)
    for archived in await asyncio.to_thread(archived_runs, settings, scope, work_master, most):
        run = archived.stored.run
        found.setdefault(run.run_id, (run.started_at or 0, run.job_id, archived))
    ordered = sorted(found.values(), key=lambda item: -item[0])[:most]
    return [(job_id, recorded) for _, job_id, recorded in ordered]


async def replay_runs(runs: PastRuns, net: Net) -> DraftReplay:
    """Return what runs would have done with another recipe; other tasks run between them."""
    jobs = []
    for job_id, recorded in runs:
        jobs.append(_replayed(job_id, recorded, net))
        await asyncio.sleep(REST_S)
    return DraftReplay(
        same=sum(not job.reason and not job.differences for job in jobs),
        different=sum(bool(job.differences) for job in jobs),
        not_replayed=sum(bool(job.reason) for job in jobs),
        jobs=tuple(jobs),
    )


def _replayed(job_id: str, recorded: RecordedRun | NotRecorded, net: Net) -> ReplayedJob:
    result = recorded if isinstance(recorded, NotRecorded) else replay_recorded(recorded, net)
    if isinstance(result, NotRecorded):
        return ReplayedJob(job_order_id=job_id, reason=result.reason)
    first = None
    if result.differences:
        item = result.differences[0]
        first = FirstDifference(
            number=item.record.number,
            signal=str(signal_text(item.record.signal)),
            recorded=public_changes(item.record.changes),
            replayed=None if item.ignored else public_changes(item.repeated),
            ignored=item.ignored,
        )
    return ReplayedJob(
        job_order_id=job_id, decisions=result.decisions, differences=len(result.differences), first=first
    )


async def condition_values(runs: PastRuns, text: str, step: str) -> ConditionValues:
    """Return the value of a condition in each run while a step was active; without a step at the last decision.

    Raises Refused for a condition that cannot be read in any of the recipes that the runs had.
    """
    values, faults = [], list[str]()
    for job_id, recorded in runs:
        if isinstance(recorded, NotRecorded):
            continue
        try:
            values.append(_value_in(job_id, recorded, text, step))
        except ExpressionSyntaxError as error:
            faults.append(str(error))
        await asyncio.sleep(REST_S)
    if faults and not values:
        raise Refused("invalid_condition", Text.of("the condition cannot be read: {fault}", fault=faults[0]))
    return ConditionValues(values=tuple(values))


def _value_in(job_id: str, recorded: RecordedRun, text: str, step: str) -> ConditionValue:
    net = recorded.net
    condition = compile_condition(text, _names(net))
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


class OfferedNames(Struct, frozen=True, kw_only=True):
    """The names that conditions of a draft may have."""

    names: tuple[OfferedName, ...]


def offered_names(recipe: Recipe, runs: PastRuns, parameters: Iterable[str], mirrors: Iterable[str]) -> OfferedNames:
    """Return the names of a recipe, of the results and variables of past jobs, of order parameters and mirrors."""
    steps = [f"steps.{step.name}.{part}" for step in recipe.steps for part in STEP_PROPERTIES]
    actions = dict.fromkeys(action.name for action in recipe.actions)
    states = [f"actions.{name}.{part}" for name in actions for part in ACTION_PROPERTIES if part != "result"]
    results: dict[str, dict[str, None]] = {}
    variables: dict[str, dict[str, None]] = {name: {} for name in parameters}
    for _, recorded in runs:
        if isinstance(recorded, NotRecorded):
            continue
        run = recorded.stored.run
        for name, value in run.variables.items():
            variables.setdefault(name, {})[show(value)] = None
        for key, association in run.associations.items():
            if key.action in actions:
                for path, value in _members(association.result):
                    results.setdefault(f"actions.{key.action}.result{path}", {})[show(value)] = None
    job = [f"job.{part}" for part in ("id", "scope")] + [f"job.parameters.{name}" for name in parameters]
    return OfferedNames(
        names=(
            *(OfferedName(name=name, kind="action") for name in states),
            *(OfferedName(name=name, kind="result", seen=_first(seen)) for name, seen in sorted(results.items())),
            *(OfferedName(name=name, kind="variable", seen=_first(seen)) for name, seen in sorted(variables.items())),
            *(OfferedName(name=name, kind="step") for name in steps),
            *(OfferedName(name=name, kind="job") for name in job),
            *(OfferedName(name=f"mirrors.{name}", kind="mirror") for name in mirrors),
        )
    )


def _first(seen: Mapping[str, None]) -> tuple[str, ...]:
    return tuple(seen)[:_MOST_SEEN]


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
