"""The public form of a finding: for `--json`, the HTTP API and the answers to the MES."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from edge.features.recipes.finding import RecipeFinding
from edge.features.recipes.positions import NO_POSITIONS, Positions
from edge.foundation.text import ENGLISH


class PublicElement(Struct, frozen=True):
    """The element of a finding: `step`, `transition` or `action`, and its name; a transition is `A → B`."""

    type: str
    name: str


class Witness(Struct, frozen=True):
    """What shows a finding: a script for `edge simulate --script`."""

    script: dict[str, Any]


class PublicFinding(Struct, frozen=True, kw_only=True):
    """A finding; line and column are those of its element in the text of the recipe, None without a text."""

    level: str
    kind: str
    element: PublicElement
    message: str
    remedy: str
    line: int | None = None
    column: int | None = None
    witness: Witness | None = None


def public_findings(
    findings: Sequence[RecipeFinding], positions: Positions = NO_POSITIONS, language: str = ENGLISH
) -> tuple[PublicFinding, ...]:
    """Return findings in their public form, with texts in a language."""
    return tuple(_public(item, positions, language) for item in findings)


def _public(item: RecipeFinding, positions: Positions, language: str) -> PublicFinding:
    line, column = positions.get((item.element.type, item.element.number), (None, None))
    return PublicFinding(
        level=item.level.value,
        kind=item.kind.value,
        element=PublicElement(item.element.type.value, item.element.name),
        message=item.message.in_language(language),
        remedy=item.remedy.in_language(language),
        line=line,
        column=column,
        witness=None if item.script is None else Witness(dict(item.script)),
    )
