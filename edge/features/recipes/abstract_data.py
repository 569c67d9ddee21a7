"""Abstract data: representative values of every name that the conditions of a recipe read.

The engine and the expression language evaluate conditions as ever. What they read of data is chosen here, when it is
read: each call of the engine is repeated with the next choice until every combination that it asks for was tried. A
value is representative of all values for which the comparisons of the recipe have the same result.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from edge.expression.syntax import (
    Call,
    Compare,
    Junction,
    Kind,
    Literal,
    MemberTest,
    Name,
    Node,
    Not,
    kind_of,
    names_of,
    nodes_of,
)
from edge.expression.value import UNKNOWN, compare, show
from edge.features.recipes.footprint import tree_of
from edge.foundation.text import Text, join_texts
from edge.sfc.net import Net

Path: TypeAlias = tuple[str | int, ...]
"""The parts of a name of data: `("torque_ok",)`, `("actions", "verify", "result", "torque")`."""
Values: TypeAlias = Mapping[Path, Any]

ANOTHER: Final = "another value"
"""Represents each text that no condition compares with."""
NO_VALUES: Final[Values] = {}
_FAR: Final = 1_000_000
_MOST_CHOICES: Final = 400
_T = TypeVar("_T")


def data_path(name: Name) -> Path | None:
    """Return the path of a name that reads data; None for one that reads the state of the run."""
    match name.path:
        case ("steps", *_) | ("mirrors", *_):
            return None
        case ("actions", _, "result", *_) | ("job", *_):
            return name.path
        case ("actions", *_):
            return None
        case path:
            return path


def conditions_of(net: Net) -> Iterator[Node]:
    """Yield each condition of a recipe once, as a tree."""
    texts = {condition.text: None for transition in net.transitions for condition in transition.conditions}
    return map(tree_of, texts)


class _Uses:
    """How conditions use each name of data."""

    def __init__(self) -> None:
        self.truths: set[Path] = set()
        self.texts: dict[Path, set[str]] = {}
        self.numbers: dict[Path, set[float]] = {}
        self.calculated: set[Path] = set()
        self.tests: dict[Path, list[Callable[[Any], Any]]] = {}
        """The comparisons of a name with a literal: values with the same results are one."""
        self.lists: set[Path] = set()

    @property
    def paths(self) -> set[Path]:
        return {*self.truths, *self.texts, *self.numbers, *self.lists}

    def read(self, node: Node, *, truth: bool) -> None:
        match node:
            case Name():
                if truth and (path := data_path(node)) is not None:
                    self.truths.add(path)
            case Not(operand=operand):
                self.read(operand, truth=True)
            case Junction(operands=operands):
                for part in operands:
                    self.read(part, truth=True)
            case Compare(left=left, right=right):
                self._compared(node, left, right)
            case MemberTest(element=element, container=container):
                self._looked_up(element, container)
            case Call(function="if", arguments=(condition, *results)):
                self.read(condition, truth=True)
                for part in results:
                    self.read(part, truth=truth)
            case Call(function="coalesce", arguments=arguments):
                for part in arguments:
                    self.read(part, truth=truth)
            case _:
                pass

    def _compared(self, node: Node, left: Node, right: Node) -> None:
        for part in nodes_of(node):
            if isinstance(part, Call) and part.function == "if":
                self.read(part.arguments[0], truth=True)
        paths = [path for name in names_of(node) if (path := data_path(name)) is not None]
        literals = [part.value for part in nodes_of(node) if isinstance(part, Literal)]
        texts = {value for value in literals if isinstance(value, str)}
        numbers = {float(value) for value in literals if isinstance(value, int | float) and not isinstance(value, bool)}
        kinds = {kind_of(left), kind_of(right)}
        for path in paths:
            if Kind.STRING in kinds:
                self.texts.setdefault(path, set()).update(texts)
            elif Kind.TRUTH in kinds:
                self.truths.add(path)
            else:
                self.numbers.setdefault(path, set()).update(numbers)
                match node, left, right:
                    case Compare(operator=word), Name(), Literal(value=bound):
                        self.tests.setdefault(path, []).append(partial(_compare_left, word, bound))
                    case Compare(operator=word), Literal(value=bound), Name():
                        self.tests.setdefault(path, []).append(partial(_compare_right, word, bound))
                    case _:
                        self.calculated.add(path)

    def _looked_up(self, element: Node, container: Node) -> None:
        for name in names_of(element):
            if (path := data_path(name)) is not None:
                self.texts.setdefault(path, set())
        if isinstance(container, Name) and (path := data_path(container)) is not None:
            self.lists.add(path)

    def values(self, path: Path) -> tuple[Any, ...]:
        """Return the representatives of a name; unknown comes first, so that a way that needs no value has none."""
        values: list[Any] = [UNKNOWN]
        if path in self.truths:
            values += [True, False]
        if path in self.numbers:
            numbers = _numbers(self.numbers[path], calculated=path in self.calculated)
            tests = () if path in self.calculated else self.tests[path]
            alike = {tuple(test(value) for test in tests) or value: value for value in reversed(numbers)}
            values += reversed(alike.values())
        if path in self.texts:
            values += [*sorted(self.texts[path]), ANOTHER]
        if path in self.lists:
            values += [[ANOTHER, *sorted({text for texts in self.texts.values() for text in texts})], []]
        return tuple(values)


def _compare_left(word: str, bound: Any, value: Any) -> Any:
    return compare(word, value, bound, "")


def _compare_right(word: str, bound: Any, value: Any) -> Any:
    return compare(word, bound, value, "")


def _numbers(bounds: set[float], *, calculated: bool) -> list[float]:
    """Return the bounds, a number between each two and one beyond either end; for calculations also far ones."""
    if calculated:
        bounds = {*bounds, 0.0, float(_FAR), float(-_FAR), 1.0}
    ordered = sorted(bounds)
    numbers = [ordered[0] - 1, ordered[0]]
    for low, high in itertools.pairwise(ordered):
        numbers += [(low + high) / 2, high]
    numbers.append(ordered[-1] + 1)
    return [int(number) if number.is_integer() else number for number in numbers]


class _Object(Mapping[str, Any]):
    """An object of data whose members are chosen when they are read."""

    def __init__(self, data: AbstractData, path: Path) -> None:
        self._data = data
        self._path = path

    def __getitem__(self, name: str) -> Any:
        return self._data.read((*self._path, name))

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def get(self, name: str, default: Any = None) -> Any:
        """Return a member."""
        return self[name]

    def copy(self) -> _Object:
        """Return the object itself: nothing changes it."""
        return self


class _List(list[Any]):
    """A list of data whose items are chosen when they are read."""

    def __init__(self, data: AbstractData, path: Path) -> None:
        super().__init__()
        self._data = data
        self._path = path

    def __len__(self) -> int:
        return _FAR

    def __getitem__(self, index: Any) -> Any:
        return self._data.read((*self._path, index))


class _JobText(str):
    """The id or scope of a job: equal to what the data choose."""

    __slots__ = ("data", "path")
    data: AbstractData
    path: Path

    def __eq__(self, other: object) -> bool:
        return bool(self.data.read(self.path) == other)

    def __hash__(self) -> int:
        return hash(str(self))


class _Mirror:
    """A copy of a mirrored set whose members are chosen when they are asked for."""

    def __init__(self, data: AbstractData, name: str) -> None:
        self._data = data
        self._name = name

    @property
    def is_stale(self) -> Any:
        return self._data.choose(("mirrors", self._name, "stale"), (False, True))

    def has(self, member: str) -> Any:
        return self._data.choose(("mirrors", self._name, member), (UNKNOWN, True, False))


class AbstractData:
    """The data of one exploration: what each name may be, and what is chosen for the present call of the engine."""

    def __init__(self, net: Net) -> None:
        uses = _Uses()
        for node in conditions_of(net):
            uses.read(node, truth=True)
        self._values = {path: uses.values(path) for path in uses.paths}
        self._inner = {path[:length] for path in self._values for length in range(1, len(path))}
        self._indexed = {
            path[:length] for path in self._values for length in range(1, len(path)) if isinstance(path[length], int)
        }
        self._choices: list[int] = []
        self._sizes: list[int] = []
        self.chosen: dict[Path, Any] = {}
        self.variables: Any = _Object(self, ())
        self.parameters: Any = _Object(self, ("job", "parameters"))
        self.mirrors: Any = {name: _Mirror(self, name) for name in net.mirrors}

    def result(self, action: str) -> Any:
        """Return the result of an action; None where no condition reads it."""
        path = ("actions", action, "result")
        return self.read(path) if path in self._inner or path in self._values else None

    def job_text(self, member: str, text: str) -> str:
        """Return the id or scope of the job."""
        path = ("job", member)
        if path not in self._values:
            return text
        job_text = _JobText(text)
        job_text.data, job_text.path = self, path
        return job_text

    def read(self, path: Path) -> Any:
        """Return the value of a name, or the object or list in which conditions read further."""
        if path in self._inner:
            return _List(self, path) if path in self._indexed else _Object(self, path)
        values = self._values.get(path)
        return UNKNOWN if values is None else self.choose(path, values)

    def choose(self, path: Path, values: tuple[Any, ...]) -> Any:
        """Return the present choice of a name; it stays for the rest of the call."""
        if path not in self.chosen:
            place = len(self._sizes)
            if place == len(self._choices):
                self._choices.append(0)
            self._sizes.append(len(values))
            self.chosen[path] = values[self._choices[place]]
        return self.chosen[path]

    def choices(self, call: Callable[[], _T], fixed: Values = NO_VALUES) -> Iterator[tuple[_T, Values]]:
        """Call a function with each combination of values that it asks for; there is a bound. Fixed ones stay."""
        self._choices = []
        for _ in range(_MOST_CHOICES):
            self._sizes, self.chosen = [], dict(fixed)
            yield call(), self.chosen
            del self._choices[len(self._sizes) :]
            while self._choices and self._choices[-1] + 1 == self._sizes[len(self._choices) - 1]:
                self._choices.pop()
            if not self._choices:
                return
            self._choices[-1] += 1

    @property
    def is_complete(self) -> bool:
        """Return whether the last `choices` tried every combination."""
        return not self._choices


def written(path: Path) -> str:
    """Return a name as conditions write it."""
    match path:
        case ("mirrors", name, member) if member != "stale":
            return f"{member!r} in mirrors.{name}"
    head, *rest = path
    return str(head) + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest)


def shown_values(values: Values) -> Text:
    """Return names with their values for people: `torque_ok is false, carrier: no value yet`."""
    return join_texts(
        ", ",
        (
            Text.of("{name}: no value yet", name=written(path))
            if value is UNKNOWN
            else Text.of("{name} is {value}", name=written(path), value=show(value))
            for path, value in values.items()
        ),
    )
