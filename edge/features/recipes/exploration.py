"""Explores what can become of a job: every outcome of every action, whatever the data.

`advance` decides, as it decides for a job. An action is done, fails, runs into its time limit or has an unknown
outcome; each step has a clock of its own; data are chosen when a condition reads them (`abstract_data`). An unknown
outcome counts only where a condition asks for it: else a person resolves it as done or failed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from edge.expression.value import UNKNOWN, EvaluationError
from edge.features.recipes.abstract_data import AbstractData, Values
from edge.features.recipes.footprint import NOW, Footprints, names_of_state
from edge.model.recipe import Intervention
from edge.sfc.advance import advance
from edge.sfc.condition import TimerBound
from edge.sfc.identifiers import AssociationKey
from edge.sfc.intervention import held_failures
from edge.sfc.net import Net, NetTransition
from edge.sfc.run import UNSUCCESSFUL, ActionState, Association, Outcome, Run, new_run
from edge.sfc.signal import (
    Advanced,
    Answer,
    CommandRequest,
    Event,
    Granted,
    Ignored,
    Intervene,
    Phase,
    Signal,
    Start,
    Tick,
    Unknown,
)
from edge.sfc.verdict import NOT_OK, verdict_of
from edge.sfc.view import RunView, stands

MOST_CALLS: Final = 4000
"""Calls of the engine after which an exploration of every order ends."""
MOST_REDUCED_CALLS: Final = 12_000
"""The same where independent paths are explored one after the other."""
_MOST_PENDING: Final = 250


class Happening(StrEnum):
    """What happens next in an exploration."""

    START = "start"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    EVENT = "event"
    TIME = "time"
    GRANTED = "granted"
    PERSON = "person"
    DATA = "data"
    """Other data, at a step at which nothing else can happen."""


class Move(Struct, frozen=True):
    """One thing that can happen to a run: of an action, of the clock of a step, of its locks, of a person."""

    kind: Happening
    step: str = ""
    key: AssociationKey | None = None
    intervene: Intervene | None = None


class ExploredState(Struct, frozen=True):
    """A run of an exploration, and how it came about: from which state, by what, with which data.

    `failed` is the last failure after which nothing was commanded or awaited.
    """

    run: Run
    failed: AssociationKey | None = None
    before: int = -1
    move: Move = Move(Happening.START)
    values: Values = {}
    requests: tuple[CommandRequest, ...] = ()
    """What the move made the gateway send."""
    could_leave: frozenset[str] = frozenset()
    """The active steps that other data would have left since the last outcome of an action."""


class ExploredMove(Struct, frozen=True):
    """A move from one state to another; `failure` is the action that failed in it."""

    before: int
    after: int
    failure: AssociationKey | None


class Standstill(Struct, frozen=True):
    """A step that no run leaves any more: in which state, and whether other data would have led on."""

    step: str
    state: ExploredState
    depends_on_data: bool


class _Advance(Struct, frozen=True):
    """What one call of the engine made of a run."""

    run: Run
    left: frozenset[str]
    failed: AssociationKey | None
    failure: AssociationKey | None
    values: Values
    requests: tuple[CommandRequest, ...]


class Exploration(Struct):
    """What was seen. `is_complete` says that nothing was left out."""

    net: Net
    states: list[ExploredState] = field(default_factory=list)
    edges: list[ExploredMove] = field(default_factory=list)
    cleared: set[int] = field(default_factory=set)
    """The transitions that cleared, by their rank."""
    activated: set[str] = field(default_factory=set)
    enabled: set[frozenset[str]] = field(default_factory=set)
    """The sets of steps that were active together."""
    cut: set[AssociationKey] = field(default_factory=set)
    """The actions that were not over when their step was left."""
    completed: set[AssociationKey] = field(default_factory=set)
    standstills: list[Standstill] = field(default_factory=list)
    swallowed: dict[AssociationKey, int] = field(default_factory=dict)
    """The failures after which a job ended as completed, with the state in which it did."""
    held: dict[str, int] = field(default_factory=dict)
    """The steps that hold a lock while a person is awaited, with such a state."""
    calls: int = 0
    is_complete: bool = True


def explore(net: Net, *, people: bool = False) -> Exploration:
    """Return what can become of a job; with `people` persons intervene where it allows that.

    Every order of what happens is explored, or where there are too many, independent paths one after the other.
    """
    whole = explore_orders(net, people=people)
    return whole if whole.is_complete else explore_orders(net, people=people, reduced=True)


def explore_orders(net: Net, *, people: bool = False, reduced: bool = False) -> Exploration:
    """Return what can become of a job in every order; `reduced`: independent paths one after the other."""
    return _Explorer(net, reduced=reduced, people=people).explore()


class _Cleared(tuple[str, ...]):  # noqa: SLOT001 - slots of a tuple cannot hold anything
    """The targets of a transition; to activate them records that it clears."""

    rank: int
    seen: set[int]

    def __iter__(self) -> Iterator[str]:
        self.seen.add(self.rank)
        return super().__iter__()


def _recording(net: Net, seen: set[int]) -> Net:
    """Return the net with transitions that record when they clear."""
    transitions = {}
    for transition in net.transitions:
        targets = _Cleared(transition.targets)
        targets.rank, targets.seen = transition.index, seen
        transitions[transition.index] = replace(transition, targets=targets)
    steps = {
        name: replace(step, outgoing=tuple(transitions[transition.index] for transition in step.outgoing))
        for name, step in net.steps.items()
    }
    return replace(net, steps=steps, transitions=tuple(transitions.values()))


class _Explorer:
    def __init__(self, net: Net, *, reduced: bool, people: bool) -> None:
        self.found = Exploration(net)
        self._net = _recording(net, self.found.cleared)
        self._data = AbstractData(net)
        self._footprints = Footprints(net)
        self._people = people
        self._most = MOST_REDUCED_CALLS if reduced else MOST_CALLS
        self._independent = _independent_steps(net) if reduced else frozenset()
        self._plain = _plain_steps(net)
        self._wakes: dict[str, list[TimerBound]] = {}
        for wake in {wake for transition in net.transitions for item in transition.conditions for wake in item.wakes}:
            self._wakes.setdefault(wake.step, []).append(wake)
        self._asked = _asked_for_unknown(net)
        self._numbers: dict[object, int] = {}
        self._waiting: deque[int] = deque()
        self._held = any(step.locks for step in net.steps.values())
        self._events = 0

    def explore(self) -> Exploration:
        """Run from the start until nothing new comes up or the bound is met."""
        start = new_run("J1", self._data.job_text("scope", "simulation"), "1", {})
        job_id = self._data.job_text("id", "J1")
        start = replace(start, job_id=job_id, variables=self._data.variables, parameters=self._data.parameters)
        self.found.states.append(ExploredState(start))
        self._expand(0, Move(Happening.START))
        while self._waiting and self.found.calls < self._most and len(self._waiting) < _MOST_PENDING:
            self._visit(self._waiting.popleft())
        self.found.is_complete = self.found.is_complete and not self._waiting
        return self.found

    def _visit(self, number: int) -> None:
        run = self.found.states[number].run
        moves = list(self._moves(run))
        if not moves and self._stuck(run):
            moves = [Move(Happening.DATA)]
        if self._people:
            moves += self._interventions(run)
        by_step: dict[str, list[Move]] = {}
        for move in moves:
            by_step.setdefault(move.step, []).append(move)
        first = next((step for step in by_step if step in self._independent and step in run.active), None)
        if first is not None and len(by_step) > 1:
            fresh = [self._expand(number, move) for move in by_step.pop(first)]
            if any(fresh):
                return
            moves = [move for rest in by_step.values() for move in rest]
        for move in moves:
            self._expand(number, move)

    def _moves(self, run: Run) -> Iterator[Move]:
        """Yield what can happen to a run, apart from people."""
        if run.locks.missing and not stands(self._net, run):
            yield Move(Happening.GRANTED)
            if run.locks.deadline is not None:
                yield Move(Happening.TIME)
        single: set[str] = set()
        for key in sorted(run.open, key=lambda key: (self._net.actions[key.latest].index, key)):
            association = run.associations[key]
            step = association.step
            is_own = not key.is_left_behind and step in run.active
            if is_own and step in self._plain and (association.awaits_outcome or association.state is _WAITING):
                # No condition asks which action of the step ended first.
                if step in single:
                    continue
                single.add(step)
            if association.awaits_outcome:
                yield Move(Happening.DONE, step, key)
                yield Move(Happening.FAILED, step, key)
                if association.state is ActionState.DISPATCHED and association.action in self._asked:
                    yield Move(Happening.UNKNOWN, step, key)
            elif association.state is _WAITING:
                yield Move(Happening.EVENT, step, key)
            if not is_own and (association.due, association.deadline) != (None, None):
                yield Move(Happening.TIME, step, key)
        for step in sorted(run.active, key=lambda name: self._net.steps[name].index):
            if self._next_instant(run, step) is not None:
                yield Move(Happening.TIME, step)

    def _interventions(self, run: Run) -> Iterator[Move]:
        """Yield what a person may do; the engine refuses what is not possible."""
        for key, action in self._net.actions.items():
            if key in run.associations:
                for kind in sorted(action.interventions):
                    yield Move(Happening.PERSON, key.step, key, Intervene(kind, action=key.action, step=key.step))
        for name in sorted(run.active):
            step = self._net.steps[name]
            if Intervention.COMPLETE in step.interventions:
                yield Move(Happening.PERSON, name, None, Intervene(Intervention.COMPLETE, step=name))
            if Intervention.FORCE in step.interventions:
                for target in {tuple.__getitem__(transition.targets, 0): None for transition in step.outgoing}:
                    yield Move(Happening.PERSON, name, None, Intervene(Intervention.FORCE, step=name, target=target))

    def _next_instant(self, run: Run, step: str) -> int | None:
        """Return when the clock of an active step next changes something."""
        instants = [
            instant
            for action in self._net.steps[step].actions
            if (association := run.associations.get(action.key)) and action.key in run.open
            for instant in (association.due, association.deadline)
            if instant is not None
        ]
        view = RunView(self._net, run, NOW)
        for wake in self._wakes.get(step, ()):
            if not (wake.other and view.step(wake.other, "X")):
                instants += self._reached(view, wake.bound, step)
        return min((instant for instant in instants if instant > NOW), default=None)

    def _reached(self, view: RunView, bound: Any, step: str) -> list[int]:
        """Return when the T of a step passes a bound, for each value that data may make of it."""

        def evaluate() -> int | None:
            try:
                seconds = bound(view)
            except EvaluationError:
                return None
            is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
            return view.wake(step, seconds) if is_number else None

        instants = {instant for instant, _ in self._data.choices(evaluate)}
        return [reached for instant in instants if instant is not None for reached in (instant, instant + 1)]

    def _signal(self, run: Run, move: Move) -> tuple[Run, Signal]:
        """Return the signal of a move, and the run to which it comes: time passes for one clock only."""
        match move:
            case Move(kind=Happening.START):
                return run, Start()
            case Move(kind=Happening.DATA):
                return run, Tick()
            case Move(kind=Happening.GRANTED):
                return run, Granted(run.locks.missing)
            case Move(kind=Happening.TIME, key=None, step=""):
                return replace(run, locks=replace(run.locks, deadline=NOW)), Tick()
            case Move(kind=Happening.TIME, key=None, step=step):
                return self._later(run, step), Tick()
            case Move(kind=Happening.TIME, key=AssociationKey() as key):
                association = run.associations[key]
                first = min(at for at in (association.due, association.deadline) if at is not None)
                return replace(run, associations=run.associations | {key: _moved(association, first - NOW)}), Tick()
            case Move(intervene=Intervene() as intervene):
                return run, intervene
            case Move(key=AssociationKey() as key):
                return run, self._outcome(run.associations[key], move.kind)
            case _:
                raise ValueError(move)

    def _outcome(self, association: Association, kind: Happening) -> Signal:
        result = self._data.result(association.action)
        match kind:
            case Happening.DONE:
                return Answer(association.command_id, ok=True, data=result)
            case Happening.FAILED:
                return Answer(association.command_id, ok=False)
            case Happening.UNKNOWN:
                return Unknown(association.command_id, "")
            case _:
                self._events += 1
                return Event(association.type_id, result, str(self._events), named=True)

    def _later(self, run: Run, step: str) -> Run:
        """Return the run when the clock of a step next changes something."""
        instant = self._next_instant(run, step)
        if instant is None:
            raise ValueError(step)
        passed = instant - NOW
        state = run.steps[step]
        moved = {
            action.key: _moved(run.associations[action.key], passed)
            for action in self._net.steps[step].actions
            if action.key in run.open
        }
        return replace(
            run,
            steps=run.steps | {step: replace(state, activated_at=state.activated_at - passed)},
            associations=run.associations | moved,
        )

    def _expand(self, number: int, move: Move) -> bool:
        """Follow a move with all data; return whether it led to a state that is new and continues."""
        before = self.found.states[number]
        run, signal = self._signal(before.run, move)
        outcomes = []
        for advanced, values in self._advanced(run, signal, _results(before.values) if move == _OTHER_DATA else {}):
            self.found.calls += 1
            if isinstance(advanced, Advanced):
                outcomes.append(self._note(before, run, advanced, values))
        self.found.is_complete = self.found.is_complete and self._data.is_complete
        could_leave = frozenset[str]().union(*(outcome.left for outcome in outcomes))
        if move.kind in {Happening.TIME, Happening.DATA}:
            could_leave |= before.could_leave
        is_fresh = False
        stuck: dict[str, ExploredState] = {}
        for outcome in outcomes:
            left = could_leave & outcome.run.active
            state = ExploredState(outcome.run, outcome.failed, number, move, outcome.values, outcome.requests, left)
            after, is_new = self._number(state)
            is_fresh |= is_new and not outcome.run.ended
            self.found.edges.append(ExploredMove(number, after, outcome.failure))
            for step in self._stuck(outcome.run) if move != _OTHER_DATA else ():
                stuck[step] = _more_known(stuck.get(step, state), state)
        for step, state in stuck.items():
            depends = step in could_leave or self._other_data_lead_on(state, step)
            if not (depends and self._loses_values(state)):
                self.found.standstills.append(Standstill(step, state, depends))
        return is_fresh

    def _loses_values(self, state: ExploredState) -> bool:
        """Return whether a plain name has no value any more: once there, it stays."""
        lost = {path for path, value in state.values.items() if value is UNKNOWN and path[0] not in _BY_ACTION}
        return any(
            earlier.values.get(path, UNKNOWN) is not UNKNOWN
            for earlier in (path_to(self.found.states, state)[:-1] if lost else ())
            for path in lost
        )

    def _advanced(self, run: Run, signal: Signal, fixed: Values) -> Iterator[tuple[Advanced | Ignored, Values]]:
        return self._data.choices(lambda: advance(self._net, run, signal, NOW, self._data.mirrors), fixed)

    def _other_data_lead_on(self, state: ExploredState, step: str) -> bool:
        """Return whether names of data with other values let a run leave a step; results of actions stay."""
        return any(
            isinstance(advanced, Advanced) and any(change.step == step for change in advanced.steps)
            for advanced, _ in self._advanced(state.run, Tick(), _results(state.values))
        )

    def _note(self, before: ExploredState, run: Run, advanced: Advanced, values: Values) -> _Advance:
        """Record what a call of the engine did."""
        found, after = self.found, self._footprints.normal(run, advanced.run, self._data.variables)
        failed, failure = before.failed, None
        left = frozenset(change.step for change in advanced.steps if not change.active)
        for kind, key in advanced.run.touched:
            if kind != "action" or (association := advanced.run.associations.get(key)) is None:
                continue
            if (
                association.state is ActionState.STOPPED
                and key.step in left
                and self._net.actions[key.latest].rule.holds
            ):
                found.cut.add(key.latest)
            if association.state is ActionState.COMPLETED:
                found.completed.add(key.latest)
            before_it = run.associations.get(key)
            if association.state in UNSUCCESSFUL and (before_it is None or before_it.state not in UNSUCCESSFUL):
                failed = failure = key.latest
        if any(request.phase is not Phase.STOP for request in advanced.requests) or any(
            association.state is _WAITING and run.associations.get(key) is not association
            for key, association in advanced.run.associations.items()
            if key in advanced.run.open
        ):
            failed = None
        found.activated.update(change.step for change in advanced.steps if change.active)
        found.enabled.add(after.active)
        return _Advance(after, left, failed, failure, dict(values), advanced.requests)

    def _is_judged_bad(self, run: Run) -> bool:
        """Return whether by the verdict of the recipe the result of an ended run is not good."""
        return self._net.verdict is not None and verdict_of(self._net, run, NOW) == NOT_OK

    def _number(self, state: ExploredState) -> tuple[int, bool]:
        """Return the number of a state, and whether it is new."""
        run, found = state.run, self.found
        key = (self._footprints.of(run), state.failed)
        number = self._numbers.get(key)
        if number is not None:
            return number, False
        number = self._numbers[key] = len(found.states)
        found.states.append(state)
        if run.outcome is Outcome.COMPLETED and state.failed is not None and not self._is_judged_bad(run):
            found.swallowed.setdefault(state.failed, number)
        if not run.ended:
            self._waiting.append(number)
            if self._held and run.locks.held and (failures := held_failures(self._net, run)):
                found.held.setdefault(failures[0].step, number)
        return number, True

    def _stuck(self, run: Run) -> list[str]:
        """Return the steps at which a run stands still for ever, apart from those that wait for these."""
        if run.ended or held_failures(self._net, run) or stands(self._net, run) or any(self._moves(run)):
            return []
        steps = [name for name in sorted(run.active) if name not in self._net.terminal]
        own = [name for name in steps if self._all_enabled(run, name)]
        return own or steps

    def _all_enabled(self, run: Run, name: str) -> bool:
        return all(run.active.issuperset(transition.sources) for transition in self._net.steps[name].outgoing)


_OTHER_DATA: Final = Move(Happening.DATA)
_BY_ACTION: Final = frozenset({"actions", "mirrors"})
"""The first parts of names whose values come and go."""


def _results(values: Values) -> Values:
    """Return the chosen members of results: unlike other data they stay as they are."""
    return {path: value for path, value in values.items() if path[0] == "actions"}


def _more_known(one: ExploredState, other: ExploredState) -> ExploredState:
    """Return the state of two whose data have more values."""
    return max(one, other, key=lambda state: sum(value is not UNKNOWN for value in state.values.values()))


_WAITING: Final = ActionState.WAITING


def _moved(association: Association, passed: int) -> Association:
    """Return an association as it is that many milliseconds later."""
    moved = {
        name: at - passed
        for name, at in (
            ("armed_at", association.armed_at),
            ("due", association.due),
            ("deadline", association.deadline),
        )
        if at is not None
    }
    return replace(association, **moved)


def _plain_steps(net: Net) -> frozenset[str]:
    """Return the steps with transitions that wait for all actions, and that no condition asks about their actions."""
    asked = {
        step
        for transition in net.transitions
        for name in _asked_actions(transition)
        for action in (*net.starting.get(name, ()), *net.resetting.get(name, ()))
        for step in (action.step,)
        if action.step not in transition.sources
    }
    return frozenset(
        name
        for name, step in net.steps.items()
        if name not in asked
        and name not in net.timed
        and all(name in transition.needs_done for transition in step.outgoing)
        and not any(action.rule.stored or action.interventions for action in step.actions)
    )


def _asked_actions(transition: NetTransition) -> frozenset[str]:
    return frozenset().union(*(condition.state_actions for condition in transition.conditions))


def _asked_for_unknown(net: Net) -> frozenset[str]:
    """Return the actions whose unknown outcome a condition asks for."""
    return frozenset(
        name
        for transition in net.transitions
        for kind, name, prop in names_of_state(transition)
        if kind == "actions" and prop in {"unknown", "state"}
    )


def _independent_steps(net: Net) -> frozenset[str]:
    """Return the steps whose moves neither change nor follow from those of steps that are active at the same time."""
    reading = {transition.index: names_of_state(transition) for transition in net.transitions}
    own = {name: {name, *(action.name for action in step.actions)} for name, step in net.steps.items()}
    users: dict[str, set[str]] = {}
    for transition in net.transitions:
        for _, name, _ in reading[transition.index]:
            users.setdefault(name, set()).update(transition.sources)
    types = {action.type_id: len(actions) for actions in net.pulling.values() for action in actions}
    independent = set()
    for name, step in net.steps.items():
        joins = [transition for transition in step.outgoing if len(transition.sources) > 1]
        if joins and (len(joins) < len(step.outgoing) or any(name not in joining.needs_done for joining in joins)):
            continue
        read = {item for transition in step.outgoing for _, item, _ in reading[transition.index] if not joins}
        near = own[name].union(*(own[target] for transition in step.outgoing for target in transition.targets))
        asked = set().union(*(users.get(item, set()) for item in own[name]))
        meanwhile = {user for user in asked if user != name and not _follows(net, name, user)}
        shared = any(
            action.rule.stored
            or action.rule.resets
            or len(net.starting.get(action.name, ())) > 1
            or (action.pull and types[action.type_id] > 1)
            for action in step.actions
        )
        if not (shared or step.locks or meanwhile or read - near):
            independent.add(name)
    return frozenset(independent)


def _follows(net: Net, name: str, user: str) -> bool:
    """Return whether a step can only be active after another: a transition of one source leads there."""
    seen, fresh = {name}, [name]
    while fresh:
        for transition in net.steps[fresh.pop()].outgoing:
            if user in transition.targets and len(transition.sources) == 1:
                return True
            added = set(transition.targets) - seen if len(transition.sources) == 1 else set()
            seen |= added
            fresh += added
    return False


def path_to(states: Sequence[ExploredState], last: ExploredState) -> list[ExploredState]:
    """Return the states from the start to one, without the run that has not begun."""
    path = [last]
    while path[-1].before > 0:
        path.append(states[path[-1].before])
    return path[::-1]
