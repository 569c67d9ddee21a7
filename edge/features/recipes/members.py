"""Findings about members of results that are probably misspelt."""

import difflib
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final

from edge.expression.syntax import names_of
from edge.features.recipes.finding import ElementType, FindingKind, RecipeElement, RecipeFinding, finding
from edge.features.recipes.footprint import tree_of
from edge.foundation.text import Text
from edge.sfc.net import Net

_ALIKE: Final = 0.85
"""How alike two names are of which one is taken for a misspelling (`difflib`)."""


def member_findings(net: Net, members: Collection[str]) -> Iterator[RecipeFinding]:
    """Yield each member of a result that is read once and is almost the name of another one.

    `members` are those of the results of known equipment; others are those that the recipe reads elsewhere.
    """
    uses = list(_uses(net))
    counts = Counter(member for _, member in uses)
    for number, member in uses:
        others = {name for place, name in uses if place < number or counts[name] > 1} - {member}
        names = sorted(others.union(members))
        if member in members or counts[member] > 1:
            continue
        close = difflib.get_close_matches(member.casefold(), {name.casefold(): None for name in names}, 1, _ALIKE)
        meant = next((name for name in names if close and name.casefold() == close[0]), None)
        if meant is None:
            continue
        written = net.recipe.transitions[number]
        name = f"{written.source} → {written.target}"
        yield finding(
            FindingKind.UNKNOWN_MEMBER,
            RecipeElement(ElementType.TRANSITION, name, number),
            Text.of("transition {name}: no known result has the member {member}", name=name, member=member),
            Text.of("Did you mean {meant}?", meant=meant),
        )


def _uses(net: Net) -> Iterator[tuple[int, str]]:
    """Yield the members of results that written transitions read, with the transition."""
    for number, transition in enumerate(net.recipe.transitions):
        for name in names_of(tree_of(transition.condition)):
            match name.path:
                case ("actions", _, "result", str() as member, *_):
                    yield number, member
                case _:
                    pass
