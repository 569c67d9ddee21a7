"""The examples of the reference page: each recipe with its chart."""

import json
import re
from pathlib import Path
from typing import Any

from edge.drawing.reading import read_chart
from edge.drawing.sheet import draw_within
from edge.drawing.text import PLAIN, chart_text
from edge.model.recipe import parse_recipe

PAGE = Path(__file__).parents[2] / "docs/reference/sfc-examples.md"
WIDTH = 100


def chart(data: object) -> str:
    """Draw a recipe as `edge draw` does."""
    recipe, faults = parse_recipe(data)
    assert recipe, faults
    return "\n".join(chart_text(draw_within(read_chart(recipe), "", None, WIDTH), PLAIN)).strip("\n")


def examples() -> list[tuple[str, dict[str, Any], str]]:
    """Return the heading, the recipe and the chart of each example."""
    found = re.findall(
        r"^## (.*)$(?:.|\n)*?```json\n((?:.|\n)*?)```\n\n```text\n((?:.|\n)*?)\n```", PAGE.read_text(), re.MULTILINE
    )
    return [(heading, json.loads(data), drawn) for heading, data, drawn in found]
