"""Parses conditions to closures and evaluates them in three-valued logic.

The language is that of `docs/reference/sfc.md`: comparisons joined by `and`, `or`, `not` over literals and names. A
condition never runs code, never loops and never recurses deeper than `DEEPEST`, whatever its text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

from edge.model.recipe import MAX_SECONDS
from edge.sfc.grammar import (
    Compare,
    ConditionSyntaxError,
    Junction,
    Literal,
    Name,
    Node,
    Not,
    parse,
)
from edge.sfc.value import UNKNOWN, ConditionFaultError, Evaluate, Truth, boolean, compare, follow, negate, show

STEP_PROPERTIES: Final = ("X", "T", "count", "done")
ACTION_PROPERTIES: Final = ("state", "done", "failed", "timed_out", "attempts", "result")
JOB_PROPERTIES: Final = ("id", "scope", "parameters")
_LIVE_PROPERTIES: Final = frozenset({"failed", "timed_out", "state", "done"})


class RunAccess(Protocol):
    """What a condition may see of a run; this is also what a registered Python condition is given."""

    def step(self, name: str, prop: str) -> Any:
        """Give X, T (seconds), count or done of a step."""

    def action(self, keys: tuple[str, ...], prop: str) -> Any:
        """Give a property of the newest of these associations."""

    def job(self, prop: str) -> Any:
        """Give id, scope or parameters of the job."""

    def variable(self, name: str) -> Any:
        """Give the newest value of a job variable, or UNKNOWN."""

    def wake(self, step: str, seconds: float) -> int | None:
        """Give the instant at which the T of an active step reaches that many seconds."""


Registry: TypeAlias = Mapping[str, Callable[[RunAccess], object]]

_registered: dict[str, Callable[[RunAccess], object]] = {}
REGISTERED: Final[Registry] = _registered


def condition(name: str) -> Callable[[Callable[[RunAccess], object]], Callable[[RunAccess], object]]:
    """Register a Python condition under a plain identifier: a pure, synchronous function of the run view."""

    def register(function: Callable[[RunAccess], object]) -> Callable[[RunAccess], object]:
        _registered[name] = function
        return function

    return register


@dataclass(frozen=True, slots=True)
class Names:
    """What the names in a condition may refer to: steps, association keys by action name, Python conditions."""

    steps: frozenset[str] = frozenset()
    actions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    registry: Registry = field(default_factory=lambda: REGISTERED)


@dataclass(frozen=True, slots=True)
class TimerBound:
    """A comparison of a step's T with a bound; `beside` is the step whose T is the bound."""

    step: str
    bound: Evaluate
    beside: str | None


@dataclass(frozen=True, slots=True)
class Unmet:
    """A part of a condition that is not true, and why: its names with their present values."""

    text: str
    because: str


@dataclass(frozen=True, slots=True)
class Condition:
    """A compiled condition. `constant` is its value when no name has one: True means true whatever happens."""

    text: str
    evaluate: Callable[[RunAccess], Truth]
    constant: Truth
    timed_steps: frozenset[str]
    state_actions: frozenset[str]
    wakes: tuple[TimerBound, ...]
    explain: Callable[[RunAccess], tuple[Unmet, ...]]


def compile_condition(text: str, names: Names) -> Condition:
    """Compile one condition; raises ConditionSyntaxError with position and reason when it is wrong."""
    node = parse(text)
    compiler = _Compiler(text, names)
    value = compiler.closure(node)
    evaluate = boolean(value, text)
    try:
        constant = evaluate(_NOTHING)
    except ConditionFaultError as error:
        raise ConditionSyntaxError(str(error)) from None
    return Condition(
        text=text,
        evaluate=evaluate,
        constant=constant,
        timed_steps=frozenset(compiler.timed_steps),
        state_actions=frozenset(compiler.state_actions),
        wakes=tuple(compiler.wakes),
        explain=lambda view: tuple(compiler.unmet(node, view)),
    )


class _Nothing:
    """The view in which no name has a value."""

    def step(self, name: str, prop: str) -> Any:
        return UNKNOWN

    def action(self, keys: tuple[str, ...], prop: str) -> Any:
        return UNKNOWN

    def job(self, prop: str) -> Any:
        return UNKNOWN

    def variable(self, name: str) -> Any:
        return UNKNOWN

    def wake(self, step: str, seconds: float) -> int | None:
        return None


_NOTHING: Final = _Nothing()


class _Compiler:
    """Turns nodes into closures and notes on the way what they name."""

    def __init__(self, text: str, names: Names) -> None:
        self._text = text
        self._names = names
        self.timed_steps: set[str] = set()
        self.state_actions: set[str] = set()
        self.wakes: list[TimerBound] = []

    def closure(self, node: Node) -> Evaluate:
        match node:
            case Literal(value=value):
                return lambda _view: value
            case Name():
                return self._name(node)
            case Not(operand=operand):
                return negate(boolean(self.closure(operand), self._part(operand)))
            case Junction():
                return self._junction(node)
            case Compare():
                return self._comparison(node)

    def _part(self, node: Node) -> str:
        return self._text[node.start : node.end]

    def _junction(self, node: Junction) -> Evaluate:
        parts = tuple(boolean(self.closure(part), self._part(part)) for part in node.operands)
        decisive = node.word == "or"

        def evaluate(view: RunAccess) -> Truth:
            known = True
            for part in parts:
                value: Truth = part(view)
                if value is decisive:
                    return decisive
                if value is UNKNOWN:
                    known = False
            return (not decisive) if known else UNKNOWN

        return evaluate

    def _comparison(self, node: Compare) -> Evaluate:
        left, right = self.closure(node.left), self.closure(node.right)
        timed, beside = _timed_step(node.left), _timed_step(node.right)
        if timed is not None:
            self.wakes.append(TimerBound(timed, right, beside))
        if beside is not None:
            self.wakes.append(TimerBound(beside, left, timed))
        text, word = self._part(node), node.operator

        def evaluate(view: RunAccess) -> Truth:
            return compare(word, left(view), right(view), text)

        return evaluate

    def _name(self, node: Name) -> Evaluate:
        first, *rest = node.path
        match first:
            case "steps":
                return self._step_name(node, rest)
            case "actions":
                return self._action_name(node, rest)
            case "job":
                prop, tail = self._property(node, rest, JOB_PROPERTIES)
                if tail and prop != "parameters":
                    raise ConditionSyntaxError(f"{self._part(node)!r}: job.{prop} has no parts", node.start)
                return follow(lambda view: view.job(prop), tail)
            case _:
                return follow(self._plain(str(first)), tuple(rest))

    def _plain(self, name: str) -> Evaluate:
        registry = self._names.registry

        def evaluate(view: RunAccess) -> Any:
            function = registry.get(name)
            if function is None or view is _NOTHING:
                return view.variable(name)
            value = _call(name, function, view)
            return view.variable(name) if value is UNKNOWN else value

        return evaluate

    def _step_name(self, node: Name, rest: list[str | int]) -> Evaluate:
        name = self._known(node, rest, self._names.steps, "step")
        prop, tail = self._property(node, rest[1:], STEP_PROPERTIES)
        if tail:
            raise ConditionSyntaxError(f"{self._part(node)!r}: steps.{name}.{prop} has no parts", node.start)
        if prop == "T":
            self.timed_steps.add(name)
        return lambda view: view.step(name, prop)

    def _action_name(self, node: Name, rest: list[str | int]) -> Evaluate:
        name = self._known(node, rest, self._names.actions, "action")
        prop, tail = self._property(node, rest[1:], ACTION_PROPERTIES)
        if tail and prop != "result":
            raise ConditionSyntaxError(f"{self._part(node)!r}: actions.{name}.{prop} has no parts", node.start)
        if prop in _LIVE_PROPERTIES:
            self.state_actions.add(name)
        keys = self._names.actions[name]
        return follow(lambda view: view.action(keys, prop), tail)

    def _known(self, node: Name, rest: list[str | int], known: Any, kind: str) -> str:
        if not rest:
            raise ConditionSyntaxError(f"{self._part(node)!r} must name a {kind}", node.start)
        if rest[0] not in known:
            raise ConditionSyntaxError(f"unknown {kind} {rest[0]!r}", node.start)
        return str(rest[0])

    def _property(
        self, node: Name, rest: list[str | int], properties: tuple[str, ...]
    ) -> tuple[str, tuple[str | int, ...]]:
        if not rest or rest[0] not in properties:
            raise ConditionSyntaxError(
                f"{self._part(node)!r} must be followed by one of {', '.join(properties)}"
                if not rest
                else f"{self._part(node)!r}: {rest[0]!r} is none of {', '.join(properties)}",
                node.start,
            )
        return str(rest[0]), tuple(rest[1:])

    def unmet(self, node: Node, view: RunAccess) -> list[Unmet]:
        """Give the smallest parts that keep a condition from being true."""
        text = self._part(node)
        try:
            value = boolean(self.closure(node), text)(view)
        except ConditionFaultError as error:
            return [Unmet(text, str(error))]
        if value is True:
            return []
        if isinstance(node, Junction):
            return [unmet for part in node.operands for unmet in self.unmet(part, view)]
        return [Unmet(text, self._present(node, view))]

    def _present(self, node: Node, view: RunAccess) -> str:
        """Name the present values in a part: `actions.a.result.torque is 61`."""
        told: dict[str, None] = {}
        for name in node.names():
            value = self.closure(name)(view)
            text = self._part(name)
            told[f"{text}: no value yet" if value is UNKNOWN or value is None else f"{text} is {show(value)}"] = None
        return ", ".join(told) or "never true"


def _timed_step(node: Node) -> str | None:
    """Give the step whose T this is; None for anything else."""
    match node:
        case Name(path=("steps", str() as step, "T")):
            return step
        case _:
            return None


def _call(name: str, function: Callable[[RunAccess], object], view: RunAccess) -> object:
    try:
        return function(view)
    except Exception as error:
        # A plant engineer's function must fail its job, never the process.
        raise ConditionFaultError(f"the Python condition {name!r} failed: {error!r}") from error


def wake_instants(condition: Condition, view: RunAccess) -> list[int]:
    """Give the instants at which the mere passing of time may change the condition."""
    instants = []
    for wake in condition.wakes:
        if wake.beside is not None and view.step(wake.beside, "X") is True:
            # Both clocks run: time alone changes nothing between them.
            continue
        try:
            bound = wake.bound(view)
        except ConditionFaultError:
            continue
        if isinstance(bound, (int, float)) and not isinstance(bound, bool) and abs(bound) <= MAX_SECONDS:
            reached = view.wake(wake.step, bound)
            if reached is not None:
                # T is whole milliseconds: `T > 5` turns one millisecond after `T >= 5` does.
                instants += [reached, reached + 1]
    return instants
