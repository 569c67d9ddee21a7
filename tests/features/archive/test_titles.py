"""Steps and actions of archived jobs have the titles of the recipe that they ran."""

import base64
import json
import zlib

import pytest

from edge.features.archive.titles import NO_TITLES, titles_of

RECIPE = {
    "steps": [{"name": "Look", "title": {"en": "Look at it", "de": "Ansehen"}}, {"name": "Done"}],
    "actions": [
        {"name": "look", "step": "Look"},
        {"name": "grease", "step": "Done", "title": "Grease it"},
        {"name": "odd", "step": "Done", "title": 3},
    ],
}


def _stored(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode())).decode()


def test_titles_are_in_the_language_and_an_action_has_that_of_its_step() -> None:
    titles = titles_of(_stored(json.dumps(RECIPE)))
    assert (titles.step("Look", "de"), titles.step("Look", "en"), titles.step("Done", "de")) == (
        "Ansehen",
        "Look at it",
        "Done",
    )
    names = ("look", "grease", "odd", "gone")
    assert [titles.action(name, "de") for name in names] == ["Ansehen", "Grease it", "odd", "gone"]


@pytest.mark.parametrize("text", ["", "{", "e30", _stored("[1]"), _stored("{")])
def test_recipe_that_cannot_be_read_has_no_titles(text: str) -> None:
    assert titles_of(text) == NO_TITLES
