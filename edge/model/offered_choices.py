"""Reads the choices that an action offers a person, and the one that its result has.

Example: the parameters `{"choices": [{"value": "ok", "title": "Yes"}]}` and the result `{"choice": "ok"}`.
"""

from collections.abc import Mapping
from typing import Any, Final

from edge.model.localized_text import AuthorText, read_author_text, words_of

CHOICE: Final = "choice"
"""The member of a result that has the value of the choice."""
_CHOICES: Final = "choices"
_FIELDS: Final = "fields"
_VALUE: Final = "value"
_NAME: Final = "name"
_TITLE: Final = "title"
_MEMBERS: Final = (_CHOICES, _FIELDS, _TITLE)


def asks_a_person(parameters: Mapping[str, Any]) -> bool:
    """Return whether the parameters of an action are those of a prompt."""
    return any(member in parameters for member in _MEMBERS)


def chosen_value(result: Any) -> str:
    """Return the value of the choice that a result has; empty without one."""
    value = result.get(CHOICE) if isinstance(result, Mapping) else None
    return value if isinstance(value, str) else ""


def offered_choices(parameters: Mapping[str, Any]) -> dict[str, AuthorText]:
    """Return the titles of the choices by their values; a choice without a title has its value."""
    return _titles(parameters.get(_CHOICES), _VALUE)


def field_titles(parameters: Mapping[str, Any]) -> dict[str, AuthorText]:
    """Return the titles of the fields to enter by their names; a field without a title has its name as words."""
    titles = _titles(parameters.get(_FIELDS), _NAME)
    return {name: words_of(name) if title == name else title for name, title in titles.items()}


def prompt_title(parameters: Mapping[str, Any]) -> AuthorText:
    """Return what a prompt asks; empty for one without a title."""
    return _read(parameters.get(_TITLE), "")


def _titles(items: object, key: str) -> dict[str, AuthorText]:
    titles: dict[str, AuthorText] = {}
    for item in items if isinstance(items, list | tuple) else ():
        name = item.get(key) if isinstance(item, Mapping) else None
        if isinstance(name, str):
            titles[name] = _read(item.get(_TITLE), name)
    return titles


def _read(title: object, default: str) -> AuthorText:
    try:
        return read_author_text(title)
    except ValueError:
        return default
