"""The numbers of results that a device was asked for and has not sent, and the text that a restart continues from."""

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct, field

_REMEMBERED = 1000


class MissingNumbers(Struct):
    """The numbers that were requested and did not come: the results around them may be durable all the same."""

    numbers: set[int] = field(default_factory=set)

    def add(self, first: int, last: int) -> None:
        """Record the numbers of a request; the newest are remembered."""
        self.numbers.update(range(max(first, last - _REMEMBERED + 1), last + 1))
        if len(self.numbers) > _REMEMBERED:
            self.numbers = set(sorted(self.numbers)[-_REMEMBERED:])

    def remove(self, first: int, last: int) -> None:
        """Record that results have come, or will not come."""
        self.numbers -= {number for number in self.numbers if first <= number <= last}

    def skip(self) -> None:
        """Record a message that could not be read: a device sends what was requested in the order of its numbers."""
        if self.numbers:
            self.numbers.remove(min(self.numbers))

    def ranges(self, end: int) -> Sequence[tuple[int, int]]:
        """Return the missing numbers up to `end`, as ranges from the first number to the last one."""
        ordered = sorted(number for number in self.numbers if number <= end)
        breaks = [n for n, (one, other) in enumerate(pairwise(ordered), 1) if other > one + 1]
        edges = [0, *breaks, len(ordered)] if ordered else []
        return [(ordered[start], ordered[stop - 1]) for start, stop in pairwise(edges)]


def position_text(number: int, missing: Sequence[tuple[int, int]]) -> str:
    """Return the number of the last durable result and the ranges that are missing before it: `9 3..3 5..7`."""
    return " ".join([str(number), *(f"{first}..{last}" for first, last in missing)])


def parse_position(text: str) -> tuple[int, MissingNumbers] | None:
    """Return the number and the missing ones in a text of `position_text`; None for another text."""
    number, *ranges = text.split() or [""]
    missing = MissingNumbers()
    try:
        for first, _, last in (range_.partition("..") for range_ in ranges):
            missing.add(int(first), int(last))
        return int(number), missing
    except ValueError:
        return None
