"""Compiles the conditions of recipes: the meaning of their names, and the instants at which time alone changes them.

The language is that of `edge.expression`, described in `docs/reference/sfc.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Struct, field

from edge.expression import compiler
from edge.expression.compiler import Expression, Unmet
from edge.expression.syntax import (
    Arithmetic,
    Call,
    Compare,
    ExpressionSyntaxError,
    MemberTest,
    Name,
    Negative,
    Node,
    children,
    nodes_of,
)
from edge.expression.value import UNKNOWN, Evaluate, EvaluationError, MemberSet, Truth, follow
from edge.foundation.text import Text
from edge.model.recipe import MAX_SECONDS
from edge.sfc.identifiers import AssociationKey
from edge.sfc.signal import AskedMirrors

STEP_PROPERTIES: Final = ("X", "T", "count", "done")
ACTION_PROPERTIES: Final = ("state", "done", "failed", "timed_out", "unknown", "attempts", "result")
JOB_PROPERTIES: Final = ("id", "scope", "parameters")
MIRRORS: Final = "mirrors"
_LIVE_PROPERTIES: Final = frozenset({"failed", "timed_out", "unknown", "state", "done"})


class RunAccess(Protocol):
    """The part of a run that a condition reads."""

    mirrors: AskedMirrors
    """The copies of mirrored sets."""

    def step(self, name: str, prop: str) -> Any:
        """Return X, T (seconds), count or done of a step."""

    def action(self, keys: tuple[AssociationKey, ...], prop: str) -> Any:
        """Return a property of the newest of these associations."""

    def job(self, prop: str) -> Any:
        """Return id, scope or parameters of the job."""

    def variable(self, name: str) -> Any:
        """Return the newest value of a job variable, or UNKNOWN."""

    def wake(self, step: str, seconds: float) -> int | None:
        """Return the instant at which the T of an active step reaches that many seconds."""


Identifiers: TypeAlias = Mapping[str, Callable[[RunAccess], object]]
"""Functions of the run view for plain names that come before job variables: a simulation sets some of them."""

NO_IDENTIFIERS: Final[Identifiers] = MappingProxyType({})


class Names(Struct, frozen=True):
    """The targets that names in a condition may refer to: steps, association keys by action name, identifiers."""

    steps: frozenset[str] = frozenset()
    actions: Mapping[str, tuple[AssociationKey, ...]] = field(default_factory=dict)
    identifiers: Identifiers = field(default_factory=lambda: NO_IDENTIFIERS)


class TimerBound(Struct, frozen=True):
    """A comparison of a step's T with a bound; `other` is the step whose T is the bound."""

    step: str
    bound: Evaluate
    other: str | None


class Condition(Struct, frozen=True):
    """A compiled condition. `constant` is its value when no name has one: True means always true.

    `mirrors` are the mirrored sets that it asks for. `is_steady` says that its value follows from the run alone.
    """

    text: str
    evaluate: Callable[[RunAccess], Truth]
    constant: Truth
    timed_steps: frozenset[str]
    state_actions: frozenset[str]
    wakes: tuple[TimerBound, ...]
    explain: Callable[[RunAccess], tuple[Unmet, ...]]
    mirrors: frozenset[str] = frozenset()
    is_steady: bool = True


def compile_condition(text: str, names: Names) -> Condition:
    """Compile one condition; raises ExpressionSyntaxError with position and reason."""
    resolver = _Resolver(text, names)
    expression = compiler.compile_condition(text, resolver.resolve)
    _check_times(expression)
    _check_mirrors(expression)
    return Condition(
        text=text,
        evaluate=expression.evaluate,
        constant=expression.constant,
        timed_steps=frozenset(resolver.timed_steps),
        state_actions=frozenset(resolver.state_actions),
        wakes=tuple(_timer_bounds(expression)),
        explain=expression.explain,
        mirrors=frozenset(resolver.mirrors),
        is_steady=not resolver.mirrors and not resolver.has_identifiers,
    )


def compile_verdict(text: str, names: Names) -> Expression:
    """Compile the verdict of a recipe; raises ExpressionSyntaxError with position and reason.

    A mirrored set changes after the end of a run: a verdict that asked for it could not be repeated.
    """
    resolver = _Resolver(text, names)
    expression = compiler.compile_value(text, resolver.resolve)
    if resolver.mirrors:
        raise ExpressionSyntaxError(Text.of("a verdict asks for no mirrored set"), 0)
    return expression


def _check_times(expression: Expression) -> None:
    """Refuse calculations with a step's T: the instant at which the result reaches a bound would be unknown."""
    for node in nodes_of(expression.node):
        if not isinstance(node, Arithmetic | Negative | Call | MemberTest):
            continue
        for child in children(node):
            if _timed_step(child) is not None:
                text = expression.part(child)
                raise ExpressionSyntaxError(
                    Text.of(
                        "{term!r} cannot be part of a calculation; compare it with one: {term} > 2 * limit", term=text
                    ),
                    child.start,
                )


def _check_mirrors(expression: Expression) -> None:
    """Refuse a mirror outside of a test for a member, and a bound of a step's T that depends on one.

    A mirror changes at any time: the instant at which T reaches such a bound would be unknown.
    """
    containers = {id(node.container) for node in nodes_of(expression.node) if isinstance(node, MemberTest)}
    for node in nodes_of(expression.node):
        match node:
            case Name(path=(first, name)) if first == MIRRORS and id(node) not in containers:
                raise ExpressionSyntaxError(
                    Text.of("a mirror stands behind `in`: member in mirrors.{name}", name=name), node.start
                )
            case Compare(left=left, right=right) if _timed_step(left) or _timed_step(right):
                if any(isinstance(item, Name) and item.path[0] == MIRRORS for item in nodes_of(node)):
                    text = expression.part(node)
                    raise ExpressionSyntaxError(
                        Text.of("{term!r}: T cannot be compared with a choice by a mirror", term=text), node.start
                    )
            case _:
                pass


def _timer_bounds(expression: Expression) -> Iterator[TimerBound]:
    for node in nodes_of(expression.node):
        if isinstance(node, Compare):
            left, right = _timed_step(node.left), _timed_step(node.right)
            if left is not None:
                yield TimerBound(left, expression.closure(node.right), right)
            if right is not None:
                yield TimerBound(right, expression.closure(node.left), left)


class _Resolver:
    """Resolves the names of one condition, and records which of them can change its value."""

    def __init__(self, text: str, names: Names) -> None:
        self._text = text
        self._names = names
        self.timed_steps: set[str] = set()
        self.state_actions: set[str] = set()
        self.mirrors: set[str] = set()
        self.has_identifiers = False

    def resolve(self, node: Name) -> Evaluate:
        first, *rest = node.path
        match first:
            case "steps":
                return self._step_name(node, rest)
            case "actions":
                return self._action_name(node, rest)
            case "job":
                prop, tail = self._property(node, rest, JOB_PROPERTIES)
                if tail and prop != "parameters":
                    raise self._without_parts(node, f"job.{prop}")
                return follow(lambda access: access.job(prop), tail)
            case "mirrors":
                return self._mirror_name(node, rest)
            case _:
                return follow(self._plain(str(first)), tuple(rest))

    def _part(self, node: Name) -> str:
        return self._text[node.start : node.end]

    def _plain(self, name: str) -> Evaluate:
        registry = self._names.identifiers
        self.has_identifiers |= name in registry

        def evaluate(access: RunAccess) -> Any:
            function = registry.get(name)
            if function is None:
                return access.variable(name)
            value = _call(name, function, access)
            return access.variable(name) if value is UNKNOWN else value

        return evaluate

    def _step_name(self, node: Name, rest: list[str | int]) -> Evaluate:
        name = self._step(node, rest)
        prop, tail = self._property(node, rest[1:], STEP_PROPERTIES)
        if tail:
            raise self._without_parts(node, f"steps.{name}.{prop}")
        if prop == "T":
            self.timed_steps.add(name)
        return lambda access: access.step(name, prop)

    def _action_name(self, node: Name, rest: list[str | int]) -> Evaluate:
        name = self._action(node, rest)
        prop, tail = self._property(node, rest[1:], ACTION_PROPERTIES)
        if tail and prop != "result":
            raise self._without_parts(node, f"actions.{name}.{prop}")
        if prop in _LIVE_PROPERTIES:
            self.state_actions.add(name)
        keys = self._names.actions[name]
        return follow(lambda access: access.action(keys, prop), tail)

    def _mirror_name(self, node: Name, rest: list[str | int]) -> Evaluate:
        match rest:
            case [str() as name]:
                self.mirrors.add(name)
                return lambda access: _MirroredSet(access.mirrors, name)
            case [str() as name, "stale"]:
                self.mirrors.add(name)
                return lambda access: access.mirrors.is_stale(name)
            case _:
                reason = Text.of(
                    "{term!r} is not of the form mirrors.NAME, behind `in`, or mirrors.NAME.stale",
                    term=self._part(node),
                )
                raise ExpressionSyntaxError(reason, node.start)

    def _without_parts(self, node: Name, name: str) -> ExpressionSyntaxError:
        return ExpressionSyntaxError(
            Text.of("{term!r}: {name} has no parts", term=self._part(node), name=name), node.start
        )

    def _step(self, node: Name, rest: list[str | int]) -> str:
        if not rest:
            raise ExpressionSyntaxError(Text.of("{term!r} must name a step", term=self._part(node)), node.start)
        if rest[0] not in self._names.steps:
            raise ExpressionSyntaxError(Text.of("unknown step {name!r}", name=rest[0]), node.start)
        return str(rest[0])

    def _action(self, node: Name, rest: list[str | int]) -> str:
        if not rest:
            raise ExpressionSyntaxError(Text.of("{term!r} must name an action", term=self._part(node)), node.start)
        if rest[0] not in self._names.actions:
            raise ExpressionSyntaxError(Text.of("unknown action {name!r}", name=rest[0]), node.start)
        return str(rest[0])

    def _property(
        self, node: Name, rest: list[str | int], properties: tuple[str, ...]
    ) -> tuple[str, tuple[str | int, ...]]:
        if not rest or rest[0] not in properties:
            term, known = self._part(node), ", ".join(properties)
            reason = Text.of("{term!r} must be followed by one of {known}", term=term, known=known)
            if rest:
                reason = Text.of("{term!r}: {name!r} is none of {known}", term=term, name=rest[0], known=known)
            raise ExpressionSyntaxError(reason, node.start)
        return str(rest[0]), tuple(rest[1:])


class _MirroredSet(MemberSet):
    """A mirror as a condition asks it."""

    __slots__ = ("_asked", "_name")

    def __init__(self, asked: AskedMirrors, name: str) -> None:
        self._asked = asked
        self._name = name

    def has(self, member: str) -> Truth:
        return self._asked.has(self._name, member)

    @property
    def text(self) -> Text:
        return self._asked.show(self._name)


def _timed_step(node: Node) -> str | None:
    """Return the step whose T this is; None for any other node."""
    match node:
        case Name(path=("steps", str() as step, "T")):
            return step
        case _:
            return None


def _call(name: str, function: Callable[[RunAccess], object], access: RunAccess) -> object:
    try:
        return function(access)
    except Exception as error:
        # A faulty identifier must fail its run, not the process.
        raise EvaluationError(
            Text.of("the identifier {name!r} failed: {error}", name=name, error=repr(error))
        ) from error


def wake_instants(condition: Condition, access: RunAccess) -> list[int]:
    """Return the instants at which time alone may change the condition."""
    instants = []
    for wake in condition.wakes:
        if wake.other is not None and access.step(wake.other, "X") is True:
            # Both clocks run: time alone changes nothing between them.
            continue
        try:
            bound = wake.bound(access)
        except EvaluationError:
            continue
        if isinstance(bound, (int, float)) and not isinstance(bound, bool) and abs(bound) <= MAX_SECONDS:
            reached = access.wake(wake.step, bound)
            if reached is not None:
                # T is whole milliseconds: `T > 5` turns one millisecond after `T >= 5` does.
                instants += [reached, reached + 1]
    return instants
