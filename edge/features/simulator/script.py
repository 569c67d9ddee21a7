"""The simulation script: the answers of equipment and the timeline of events, in the order in which they are due."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping
from enum import IntEnum
from itertools import count
from typing import Annotated, Any, Generic, Literal, TypeAlias, TypeVar

import msgspec

from edge.foundation.errors import EdgeError
from edge.foundation.text import Text
from edge.model.recipe import MAX_SECONDS, Intervention
from edge.sfc.signal import Intervene, MirrorCopy, Resolution, Resolve

_T = TypeVar("_T")


class EventRank(IntEnum):
    """The order of the events of one instant."""

    SET = 0
    START = 1
    TIMELINE = 2
    ANSWER = 3


class EventQueue(Generic[_T]):
    """A queue of planned events, ordered by instant, rank and insertion; instants are milliseconds."""

    def __init__(self) -> None:
        self._planned: list[tuple[int, EventRank, int, _T]] = []
        self._order = count()

    @property
    def next_at(self) -> int | None:
        """Return the instant of the next event; None when the queue is empty."""
        return self._planned[0][0] if self._planned else None

    def push(self, at: int, rank: EventRank, what: _T) -> None:
        """Add an event to the queue."""
        heapq.heappush(self._planned, (at, rank, next(self._order), what))

    def pop(self) -> tuple[int, _T]:
        """Remove the next event; return its instant and the event."""
        at, _, _, what = heapq.heappop(self._planned)
        return at, what


def milliseconds(seconds: float) -> int:
    """Return seconds of a script as whole milliseconds."""
    return round(seconds * 1000)


Seconds: TypeAlias = float


MOST_ANSWERS = 1000


class ScriptError(EdgeError):
    """An invalid script."""


class AnswerPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The answers to a command: their result, delay and number."""

    result: Literal["ok", "failed", "unknown", "none"] = "ok"
    after: Seconds = 0.1
    data: Any = None
    error: str | None = None
    times: int = 1
    repeat_gap: Seconds = 0.0

    @property
    def reason(self) -> str:
        """Return why the outcome is unknown."""
        return self.error or "the script answers unknown"

    def delays(self) -> list[int]:
        """Return the delay of each answer in milliseconds; empty without an answer."""
        times = 0 if self.result == "none" else self.times
        return [milliseconds(self.after) + repeat * milliseconds(self.repeat_gap) for repeat in range(times)]


class AnswerRule(AnswerPlan, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The answers to the commands of a type; `nth` selects the n-th command of that type, from 1."""

    type_id: str
    action: str | None = None
    job: str | None = None
    nth: int | None = None


class ScriptEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An event from equipment; without an id, it gets a unique one."""

    type_id: str
    data: Any = None
    id: str | None = None
    job: str | None = None


class ScriptIntervention(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An intervention of a person, in the job of the entry, else in all."""

    kind: Intervention
    action: str = ""
    step: str = ""
    target: str = ""
    data: Any = None

    def signal(self) -> Intervene:
        """Return the intervention as a signal."""
        return Intervene(self.kind, self.action, self.step, self.target, self.data, "simulated", "operator")


class ScriptResolution(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The decision of a person about an unknown outcome, in the job of the entry, else in all."""

    action: str
    resolution: Resolution
    data: Any = None

    def signal(self) -> Resolve:
        """Return the decision as a signal."""
        return Resolve(self.action, self.resolution, self.data, "simulated", "operator")


class TimelineEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One entry of the timeline: exactly one of event, set, mirror, operator, intervene, resolve and system."""

    at: Seconds
    event: ScriptEvent | None = None
    set: dict[str, bool | float | str] | None = None
    mirror: dict[str, tuple[str, ...] | None] | None = None
    operator: Literal["pause", "resume", "abort"] | None = None
    intervene: ScriptIntervention | None = None
    resolve: ScriptResolution | None = None
    system: Literal["restart", "replace_recipe"] | None = None
    recipe: Any = None
    job: str | None = None

    @property
    def sets_names(self) -> bool:
        """Return whether it changes what names in conditions mean; such entries come first at an instant."""
        return self.set is not None or self.mirror is not None

    @property
    def decision(self) -> ScriptIntervention | ScriptResolution | None:
        """Return what a person decides in a job."""
        return self.intervene if self.intervene is not None else self.resolve


class ScriptJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A job, its start and the parameters of its order; `start` is an alias of `at`."""

    id: str
    at: Seconds | None = None
    start: Seconds | None = None
    parameters: dict[str, Any] = {}

    @property
    def starts_at(self) -> Seconds:
        """Return the start of the job, in seconds after the start of the simulation."""
        return self.at if self.at is not None else self.start or 0.0


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole script; times are seconds after the start of the simulation."""

    default: AnswerPlan = AnswerPlan()
    equipment: tuple[AnswerRule, ...] = ()
    timeline: tuple[TimelineEntry, ...] = ()
    jobs: tuple[ScriptJob, ...] = (ScriptJob("J1", 0.0),)
    horizon: Seconds = 3600.0
    most_changes: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """The number of changes of steps after which the virtual time ends; None does not limit them."""

    def answer_plan(self, type_id: str, action: str, job: str, nth: int) -> AnswerPlan:
        """Return the answer plan of a command: the first rule that matches, else the default."""
        for rule in self.equipment:
            if (
                rule.type_id == type_id
                and rule.action in {None, action}
                and rule.job in {None, job}
                and rule.nth in {None, nth}
            ):
                return rule
        return self.default


def parse_script(data: object) -> Script:
    """Parse a script from decoded JSON; raises ScriptError with the place of the fault."""
    try:
        script = msgspec.convert(data, type=Script)
    except msgspec.ValidationError as error:
        raise ScriptError(Text.of("the script cannot be read: {reason}", reason=error)) from error
    if problems := list(_problems(script)):
        raise ScriptError("; ".join(problems))
    return script


def _problems(script: Script) -> list[str]:
    found = []
    for number, entry in enumerate(script.timeline):
        decisions = [entry.operator, entry.intervene, entry.resolve]
        kinds = [entry.event, entry.set, entry.mirror, *decisions, entry.system]
        if sum(kind is not None for kind in kinds) != 1:
            words = "event, set, mirror, operator, intervene, resolve, system"
            found.append(f"timeline[{number}]: exactly one of {words} is needed")
        if (entry.system == "replace_recipe") != (entry.recipe is not None):
            found.append(f"timeline[{number}]: a recipe belongs to system 'replace_recipe'")
    if not script.jobs:
        found.append("jobs: at least one job is needed")
    for number, job in enumerate(script.jobs):
        if job.at is not None and job.start is not None:
            found.append(f"jobs[{number}]: set the start once, as 'at' or as 'start'")
        if not job.id:
            found.append(f"jobs[{number}]: a job needs an id")
        if any(other.id == job.id for other in script.jobs[:number]):
            found.append(f"jobs[{number}]: there is a job {job.id!r} already")
    for place, answer_plan in [
        ("default", script.default),
        *((f"equipment[{n}]", r) for n, r in enumerate(script.equipment)),
    ]:
        if not 0 <= answer_plan.times <= MOST_ANSWERS:
            found.append(f"{place}: 'times' must be between 0 and {MOST_ANSWERS}")
    times = [script.horizon, *(entry.at for entry in script.timeline), *(job.starts_at for job in script.jobs)]
    times += [script.default.after, *(rule.after for rule in script.equipment)]
    times += [script.default.repeat_gap, *(rule.repeat_gap for rule in script.equipment)]
    if not all(math.isfinite(time) and 0 <= time <= MAX_SECONDS for time in times):
        found.append(f"times must be seconds between 0 and {MAX_SECONDS}")
    return found


def mirrored(known: Mapping[str, MirrorCopy], entries: Mapping[str, Iterable[str] | None]) -> dict[str, MirrorCopy]:
    """Return the copies after an entry of a script: new members by name; None makes the last copy stale."""
    after = dict(known)
    for name, members in entries.items():
        if members is not None:
            after[name] = MirrorCopy(frozenset(members))
        elif name in after:
            after[name] = MirrorCopy(after[name].members, is_stale=True)
    return after
