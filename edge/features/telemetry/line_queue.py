"""Queues lines within a bound: a full queue drops the oldest line of the busiest tag, those of alarms last."""

from collections import OrderedDict, deque
from typing import Final

from edge.ports.sample_lines import Line, Sample

_Name = tuple[type, str]
"""Samples and occurrences of one name are counted apart."""


class _Counts:
    """The numbers of waiting lines by their names, and the names by how many of their lines wait."""

    def __init__(self) -> None:
        self._numbers: dict[_Name, deque[int]] = {}
        self._names: dict[int, dict[_Name, None]] = {}
        self._highest = 0

    def __bool__(self) -> bool:
        """Return whether a line waits."""
        return bool(self._numbers)

    def add(self, name: _Name, number: int) -> None:
        """Count a line."""
        numbers = self._numbers.get(name)
        if numbers is None:
            numbers = self._numbers[name] = deque()
        numbers.append(number)
        self._move(name, len(numbers) - 1, len(numbers))
        self._highest = max(self._highest, len(numbers))

    def remove_oldest(self, name: _Name) -> int:
        """Stop counting the oldest line of a name; return its number."""
        numbers = self._numbers[name]
        oldest = numbers.popleft()
        self._move(name, len(numbers) + 1, len(numbers))
        if not numbers:
            del self._numbers[name]
        if self._highest and self._highest not in self._names:
            self._highest -= 1
        return oldest

    def busiest(self) -> _Name:
        """Return the name of which most lines wait; of several the one that has had so many for the longest time."""
        return next(iter(self._names[self._highest]))

    def _move(self, name: _Name, before: int, after: int) -> None:
        if before:
            names = self._names[before]
            del names[name]
            if not names:
                del self._names[before]
        if after:
            self._names.setdefault(after, {})[name] = None


class LineQueue:
    """Lines in the order of arrival, at most `size`; adding, taking and dropping take the same time at any length."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lines: OrderedDict[int, tuple[Line, _Counts]] = OrderedDict()
        self._added = 0
        self._others, self._of_alarms, self._occurrences = _Counts(), _Counts(), _Counts()
        self._drop_order: Final = (self._others, self._of_alarms, self._occurrences)

    def __len__(self) -> int:
        """Return the number of waiting lines."""
        return len(self._lines)

    def add(self, line: Line, *, raises_alarms: bool) -> bool:
        """Add a line; return whether another one was dropped for it. `raises_alarms`: a rule takes its tag."""
        is_dropped = len(self._lines) >= self._size
        if is_dropped:
            counts = next(tags for tags in self._drop_order if tags)
            del self._lines[counts.remove_oldest(counts.busiest())]
        counts = self._of_alarms if raises_alarms else self._others
        if not isinstance(line, Sample):
            counts = self._occurrences
        counts.add(_name(line), self._added)
        self._lines[self._added] = line, counts
        self._added += 1
        return is_dropped

    def take(self, most: int) -> tuple[Line, ...]:
        """Remove and return the oldest lines."""
        taken = []
        for _ in range(min(most, len(self._lines))):
            _, (line, counts) = self._lines.popitem(last=False)
            counts.remove_oldest(_name(line))
            taken.append(line)
        return tuple(taken)

    @property
    def settled(self) -> int:
        """Return of how many lines, in the order of arrival, none waits any longer."""
        return next(iter(self._lines), self._added)


def _name(line: Line) -> _Name:
    return (Sample, line.tag) if isinstance(line, Sample) else (type(line), line.name)
