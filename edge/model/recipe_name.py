"""Names what a job runs: the revision of a recipe and its hash, as job responses, OPC UA and the page show it."""

from typing import Final

from msgspec import Struct


class RecipeName(Struct, frozen=True):
    """The revision of a Work Master, counted from 1, and the hash of its recipe; 0 and empty where it has none.

    The text of it is `12 3f0c7b12aa45`.
    """

    revision: int = 0
    hash: str = ""

    def __str__(self) -> str:
        return f"{self.revision} {self.hash}" if self.revision else ""


NO_RECIPE_NAME: Final = RecipeName()


def read_recipe_name(text: str) -> RecipeName:
    """Return what a text names; an empty one names nothing. Raises ValueError for another text."""
    revision, _, digest = text.partition(" ")
    return RecipeName(int(revision), digest) if text else NO_RECIPE_NAME
