"""Exports of recipes, and what other tools may do with them."""

from typing import Any

from edge.features.recipes.plcopen.writer import export_plcopen
from tests.sfc.recipes import net_of

Json = dict[str, Any]
CREATED = "2026-01-01T00:00:00"


def exported(recipe: Json, name: str = "Main") -> bytes:
    """Return the chart of a recipe as XML."""
    return export_plcopen(net_of(recipe), recipe, name, CREATED)


def edited(data: bytes, *changes: tuple[str, str]) -> bytes:
    """Replace text in a file, as another tool may; each has to be there."""
    text = data.decode()
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after)
    return text.encode()
