"""The numbers of the results of a device: the last one, the missing ones before it, and the one to remember."""

from collections.abc import Iterable, Sequence
from datetime import datetime
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


class Position(Struct, frozen=True):
    """The place of a result in the order of a device."""

    sequence: int = 0
    instant: datetime | None = None

    def is_after(self, before: "Position", *, is_live: bool) -> bool:
        """Return whether a result came after another one; numbers may be missing, repeat or begin again.

        With `is_live`, one of the same second counts: one that was sent before is recognized as a repetition.
        """
        if self.sequence and self.sequence > before.sequence:
            return True
        if self.instant is None or before.instant is None:
            return not self.sequence or not before.sequence or is_live
        if self.instant == before.instant:
            return not self.sequence or is_live
        return self.instant > before.instant


class Gap(Struct, frozen=True):
    """Missing numbers from `first` to `last`; with `after`, only results after that instant are new."""

    first: int
    last: int
    after: datetime | None = None


class ResultNumbers(Struct):
    """The numbers of the results that came; numbers may jump, repeat, or begin again after a reset of the device."""

    last: int | None = None
    instant: datetime | None = None
    gaps: list[Gap] = field(default_factory=list)
    deferred: list[Gap] = field(default_factory=list)
    """Missing numbers whose request was not answered: they are requested again later."""

    def is_new(self, number: int, instant: datetime | None) -> bool:
        """Return whether the newest result came after the last one, as far as number and instant show it."""
        if self.last is None:
            return False
        if number < 1 or number > self.last:
            return True
        if instant is None or self.instant is None:
            # Numbers that began again; in doubt a result is one of its own.
            return number < self.last
        return instant > self.instant

    def follow(self, number: int, instant: datetime | None) -> None:
        """Record the number of the newest result; the numbers that are missing before it become a gap."""
        if number < 1 or number == self.last:
            self.instant = instant or self.instant
            return
        if self.last is None:
            self.gaps, self.deferred = [], []
        elif number > self.last:
            self.gaps += [Gap(self.last + 1, number - 1)] if number > self.last + 1 else []
        elif instant is None or self.instant is None:
            # The results since the numbers of the device began again are not known.
            self.gaps, self.deferred = [], []
        elif instant > self.instant:
            self.begin_again(number, instant, self.instant)
        else:
            # An older result, reported again.
            return
        self.last, self.instant = number, instant or self.instant

    def begin_again(self, number: int, instant: datetime, after: datetime) -> None:
        """Record the newest result since the numbers of the device began again after an instant, from 1 on."""
        self.gaps, self.deferred = ([Gap(1, number - 1, after)] if number > 1 else []), []
        self.last, self.instant = number, instant

    def defer(self, number: int, after: datetime | None) -> None:
        """Record a missing number whose request was not answered."""
        self.deferred.append(Gap(number, number, after))

    def retry(self) -> None:
        """Request the deferred numbers again, after all others."""
        self.gaps, self.deferred = [*self.deferred, *self.gaps], []

    def narrow(self, gap: Gap, last: int) -> None:
        """Limit a gap to its numbers up to `last`; remove it when none is left."""
        left = [Gap(gap.first, last, gap.after)] if last >= gap.first else []
        self.gaps = [other for missing in self.gaps for other in (left if missing == gap else [missing])]

    def durable(self, unsettled: Iterable[int]) -> int | None:
        """Return the number up to which no result is missing or unsettled: a restart continues after it."""
        if self.last is None:
            return None
        open_numbers = [
            *(number for number in unsettled if number > 0),
            *(gap.first for gap in (*self.gaps, *self.deferred)),
        ]
        return min([self.last, *(number - 1 for number in open_numbers)])
