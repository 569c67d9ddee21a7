"""The messages that how-to pages quote are those of the code: a reader searches for them."""

import ast
import re
import string
from collections.abc import Iterator

from tests.architecture.sources import modules, nodes, project_files, text

_HEADER = re.compile(r"\| (?:[^|]*\bthe log(?: says)?|message) \|")
"""The first cell of a table whose rows are messages."""
_OF_OTHER_PROGRAMS = ("Not authorized",)
_SHORTEST = 12
"""The least characters that a message has apart from values."""


def _rows(page: str) -> Iterator[str]:
    """Yield the first cells of the tables of messages."""
    is_message = False
    for line in page.splitlines():
        if not line.startswith("|"):
            is_message = False
        elif _HEADER.match(line):
            is_message = True
        elif is_message and not line.startswith("|---"):
            yield line.split(" | ")[0]


def _parts(quoted: str) -> list[str]:
    """Return what a message holds apart from values, of two words or more each."""
    parts = [part.strip() for part in re.split(r"…|[:;,'\"()]|[A-Z_]{2,}|\S*\d\S*", quoted)]
    return [part for part in parts if " " in part]


def _parts_of(node: ast.AST) -> list[str | None]:
    """Return the fixed parts of a formatted message, None for a value between them; nothing for another node."""
    match node:
        case ast.JoinedStr(values=values):
            return [str(item.value) if isinstance(item, ast.Constant) else None for item in values]
        case ast.Call(func=ast.Attribute(value=ast.Name(id="Text"), attr="of"), args=[ast.Constant(value=str(id_))]):
            return [part for fixed, *_ in string.Formatter().parse(id_) for part in (fixed or None, None)]
        case _:
            return []


def _pattern(parts: list[str | None]) -> re.Pattern[str] | None:
    """Return the pattern of a formatted message, without the values at its ends."""
    while parts and parts[0] is None:
        del parts[0]
    while parts and parts[-1] is None:
        del parts[-1]
    if sum(len(str(part)) for part in parts if part is not None) < _SHORTEST:
        return None
    return re.compile(".+".join(re.escape(str(part).strip(" :")) for part in parts if part is not None))


def test_messages_that_pages_quote_are_in_the_code() -> None:
    every = [node for path in modules() for node in nodes(path)]
    literals = "\n".join(node.value for node in every if isinstance(node, ast.Constant) and isinstance(node.value, str))
    patterns = list(filter(None, (_pattern(_parts_of(node)) for node in every)))
    quoted = [
        (str(path), message)
        for path in project_files()
        if path.suffix == ".md" and path.parts[:2] == ("docs", "how-to")
        for cell in _rows(text(path))
        for message in re.findall(r"`([^`]+)`", cell)
        if _parts(message) and message not in _OF_OTHER_PROGRAMS
    ]
    missing = [
        (page, message)
        for page, message in quoted
        if any(part not in literals for part in _parts(message))
        and not any(pattern.search(message) for pattern in patterns)
    ]
    assert len(quoted) > 60
    assert missing == []
