"""The key of an action association within a run, with the text under which it is stored."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from edge.sfc.command_id import quote, unquote

_TEXT: Final = re.compile(r"(?P<action>[^@#/]*)@(?P<step>[^@#/]*)(?:#(?P<number>\d{1,9}))?(?:/(?P<attempt>\d{1,9}))?")


class AssociationKey(NamedTuple):
    """Identifies an association: of an action with a step, or an earlier attempt of it.

    `number` counts from 1 when an action stands in the same step more than once. `attempt` is 0 for the latest
    activation, else the attempt whose command was still open when the step became active again.
    """

    action: str
    step: str
    number: int = 1
    attempt: int = 0

    @property
    def is_left_behind(self) -> bool:
        """Return whether it is an earlier attempt, next to the latest activation."""
        return self.attempt != 0

    @property
    def latest(self) -> AssociationKey:
        """Return the key of the latest activation."""
        return self._replace(attempt=0) if self.attempt else self

    def left_behind(self, attempt: int) -> AssociationKey:
        """Return the key of an earlier attempt."""
        return self._replace(attempt=attempt)

    def __str__(self) -> str:
        return _text(self)


def parse_association_key(text: str) -> AssociationKey:
    """Parse `action@step`, `action@step#number` and `…/attempt`; raises ValueError for any other text."""
    return _parse(text)


# A run asks for the same few keys in every decision.
@lru_cache(maxsize=4096)
def _text(key: AssociationKey) -> str:
    number = f"#{key.number}" if key.number != 1 else ""
    attempt = f"/{key.attempt}" if key.attempt else ""
    return f"{quote(key.action)}@{quote(key.step)}{number}{attempt}"


@lru_cache(maxsize=4096)
def _parse(text: str) -> AssociationKey:
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a key of an association")
    number, attempt = match["number"] or 1, match["attempt"] or 0
    return AssociationKey(unquote(match["action"]), unquote(match["step"]), int(number), int(attempt))
