"""The numbers of the results of a device: the last one, the missing ones before it, and the one to remember."""

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct, field


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

    def is_new(self, number: int, instant: datetime | None) -> bool:
        """Return whether the newest result came after the last one, as far as number and instant show it."""
        if self.last is None:
            return False
        if number < 1 or number > self.last:
            return True
        return instant is not None and self.instant is not None and instant > self.instant

    def follow(self, number: int, instant: datetime | None) -> None:
        """Record the number of the newest result; the numbers that are missing before it become a gap."""
        if number < 1 or number == self.last:
            self.instant = instant or self.instant
            return
        if self.last is None:
            self.gaps = []
        elif number > self.last:
            self.gaps += [Gap(self.last + 1, number - 1)] if number > self.last + 1 else []
        elif instant is None or self.instant is None:
            # The results since the numbers of the device began again are not known.
            self.gaps = []
        elif instant > self.instant:
            self.gaps = [Gap(1, number - 1, self.instant)] if number > 1 else []
        else:
            # An older result, reported again.
            return
        self.last, self.instant = number, instant or self.instant

    def narrow(self, gap: Gap, last: int) -> None:
        """Limit a gap to its numbers up to `last`; remove it when none is left."""
        left = [Gap(gap.first, last, gap.after)] if last >= gap.first else []
        self.gaps = [other for missing in self.gaps for other in (left if missing == gap else [missing])]

    def durable(self, unsettled: Iterable[int]) -> int | None:
        """Return the number up to which no result is missing or unsettled: a restart continues after it."""
        if self.last is None:
            return None
        open_numbers = [*(number for number in unsettled if number > 0), *(gap.first for gap in self.gaps)]
        return min([self.last, *(number - 1 for number in open_numbers)])
