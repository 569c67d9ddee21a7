"""Names the steps and actions of archived jobs by the titles of the recipes that they ran."""

import functools
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from edge.model.localized_text import AuthorText, choose_text, read_author_text
from edge.store.runs import recipe_text


class Titles(Struct, frozen=True):
    """The titles of a recipe by the names of its steps and actions; an action without one has that of its step."""

    steps: Mapping[str, AuthorText] = {}
    actions: Mapping[str, AuthorText] = {}

    def step(self, name: str, language: str) -> str:
        """Return the title of a step in a language; its name without one."""
        return choose_text(self.steps.get(name, name), (language,))

    def action(self, name: str, language: str) -> str:
        """Return the title of an action in a language; its name without one."""
        return choose_text(self.actions.get(name, name), (language,))


NO_TITLES: Final = Titles()


class _TitledPart(Struct):
    name: str = ""
    step: str = ""
    title: Any = None


class _TitledRecipe(Struct):
    steps: list[_TitledPart] = []
    actions: list[_TitledPart] = []


@functools.lru_cache(maxsize=64)
def titles_of(recipe: str) -> Titles:
    """Return the titles of a recipe as a run stores it; none of one that cannot be read."""
    try:
        found = msgspec.json.decode(recipe_text(recipe), type=_TitledRecipe)
    except (ValueError, zlib.error):
        return NO_TITLES
    steps = dict(_titled(found.steps))
    of_steps = {part.name: steps[part.step] for part in reversed(found.actions) if part.step in steps}
    return Titles(steps, of_steps | dict(_titled(found.actions)))


def _titled(parts: Sequence[_TitledPart]) -> Iterator[tuple[str, AuthorText]]:
    for part in parts:
        try:
            yield part.name, read_author_text(part.title)
        except ValueError:
            continue
