"""Checks the language of code and pages: plain technical English, the words of the field, one word for one meaning.

`python -m tests.architecture.language PATH...` prints what these files or folders violate; the rules are explained in
CONTRIBUTING.md. A path counts as clean once it stands in `plain_language.txt`; from then on the checks keep it so.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.sources import ROOT, nodes, project_files, text

VERBS = frozenset(Path(__file__).with_name("docstring_verbs.txt").read_text(encoding="utf-8").split())
"""How the docstring of a function may open, in the imperative. A missing verb of the field is added to that file."""

_OPENINGS = re.compile(r"(Give|Tell|Say|Have|Hold to|Know|Be|Let|Make sure|See|Who|Whoever|What|Nobody|How|Where)s?\b")
"""How no docstring may open; `What`, `How` and `Where` are allowed for values, which are described, not called."""

WORDS = {
    r"tells?|told|telling": "log, report, publish, return or notify",
    r"gives?|gave|giving": "return, pass or provide",
    r"anew": "again",
    r"besides": "also",
    r"in vain": "state the reason: dropped, refused, unanswered",
    r"mend(?:s|ed|ing)?": "fix, correct or repair",
    r"heed(?:s|ed|ing)?": "observe, obey or handle",
    r"lays?(?! out)|laid(?! out)": "restore, set or place",
    r"whom": "name the thing",
    r"of another make": "from another vendor",
    r"there is none that": "there is no ...",
    r"nobody(?!, observer)": "name the thing: no client, no gateway",
    r"owes?|owed": "open commands, pending",
    r"news": "changes, notifications",
    r"beside(?!s)": "next to, in addition to, concurrently with",
    r"whoever|somebody|everybody": "name the thing: a client, a person, another instance",
    r"go(?:es|ing)? on|went on": "continue",
    r"signs? of life": "heartbeat",
    r"pile(?:s|d)? up": "above limit",
    r"pass(?:es|ed)? over": "discarded, skipped",
    r"(?<!there )(?:is|was) no (?!longer|more|wider|bytes)\w+": "is not a ...",
    r"(?<!there )(?:are|were) no (?!longer|more)\w+": "are not ...",
}
"""Words to avoid -> what to write instead."""

_ANY_WORD = re.compile(rf"\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)
_FORBIDDEN = {re.compile(rf"\b(?:{word})\b", re.IGNORECASE): instead for word, instead in WORDS.items()}
_FORBIDDEN_NAMES = frozenset(
    {"tell", "tells", "told", "telling", "say", "says", "said", "heed", "mend", "anew", "whom", "news"}
)
LONGEST_TEST_NAME = 70
_TEST_OPENINGS = re.compile(
    r"test_(?:as|it|its|nobodys?|nothing|of|so|they|what|whatever|which|who|whoever|whose|why)_"
)
"""How no name of a test may open: its subject is a thing of the product."""

CLEAN = Path(__file__).with_name("plain_language.txt")


def clean_paths() -> list[str]:
    """Return the files and folders whose language is kept clean."""
    lines = CLEAN.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def clean_files() -> list[Path]:
    """Return every file at or below a clean path."""
    roots = [Path(name) for name in clean_paths()]
    return [path for path in project_files() if any(path == root or root in path.parents for root in roots)]


def violations(path: Path) -> Iterator[str]:
    """Return every violation of a file, each with its line."""
    if path.suffix == ".py":
        yield from _python(path)
    elif path.suffix == ".md":
        yield from _prose(path, 1, _without_code(text(path)))


def _python(path: Path) -> Iterator[str]:
    is_test = path.parts[0] == "tests"
    for node in nodes(path):
        yield from _names(path, node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            yield from _docstring(path, node, is_test=is_test)
        if not is_test and isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield from _prose(path, node.lineno, node.value)
    # Few files have one of the words anywhere: the comments of the others are not searched one by one.
    is_searched = _ANY_WORD.search(text(path)) is not None
    for token in tokenize.generate_tokens(io.StringIO(text(path)).readline) if is_searched else ():
        if token.type == tokenize.COMMENT:
            yield from _prose(path, token.start[0], _without_code(token.string))


def _docstring(
    path: Path, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module, *, is_test: bool
) -> Iterator[str]:
    docstring = ast.get_docstring(node)
    if docstring is None:
        return
    line = node.body[0].lineno
    if is_test:  # the strings of other code are searched one by one
        yield from _prose(path, line, _without_code(docstring))
    first = docstring.split()[0].strip(".,:;")
    is_value = not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or _is_value(node)
    if _OPENINGS.match(docstring) and not (is_value and first in {"What", "How", "Where"}):
        yield f"{path}:{line}: a docstring opens with {first!r}"
    elif not is_value and not is_test and first.lower() not in VERBS:
        yield f"{path}:{line}: {first!r} is not a verb of the field in the imperative (see VERBS)"


def _is_value(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function is read like a value: a property or a fixture."""
    decorators = {ast.unparse(item).partition("(")[0].rpartition(".")[2] for item in node.decorator_list}
    return bool(decorators & {"property", "cached_property", "fixture", "setter"})


def _names(path: Path, node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            pass
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            pass
        case _:
            return
    line = getattr(node, "lineno", 0)
    if name == "each":
        yield f"{path}:{line}: a variable is a noun: name what it holds instead of 'each'"
    if name.startswith("test_") and len(name) > LONGEST_TEST_NAME:
        yield f"{path}:{line}: {name} has {len(name)} characters, at most {LONGEST_TEST_NAME} are allowed"
    if name.startswith("test_"):
        yield from _prose(path, line, name.replace("_", " "))
        if match := _TEST_OPENINGS.match(name):
            yield f"{path}:{line}: {name} opens with {match[0]}: name the thing that is tested"
    words = {value.lower() for value in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
    if wrong := words & _FORBIDDEN_NAMES:
        yield f"{path}:{line}: the name {name!r} holds {', '.join(sorted(wrong))!r}"


def _prose(path: Path, line: int, words: str) -> Iterator[str]:
    for pattern, instead in _FORBIDDEN.items():
        for match in pattern.finditer(words):
            at = line + words.count("\n", 0, match.start())
            yield f"{path}:{at}: {match[0]!r}: write instead: {instead}"


def _without_code(words: str) -> str:
    """Return text with its code blanked out; lines keep their numbers."""

    def blank(found: re.Match[str]) -> str:
        return "\n" * found[0].count("\n")

    return re.sub(r"`[^`\n]+`", blank, re.sub(r"^```.*?^```$", blank, words, flags=re.MULTILINE | re.DOTALL))


def main(arguments: list[str]) -> int:
    """Print the violations of files and folders; return the exit status."""
    roots = [Path(argument).resolve().relative_to(ROOT) for argument in arguments]
    chosen = [path for path in project_files() if any(path == root or root in path.parents for root in roots)]
    found = [violation for path in chosen for violation in violations(path)]
    sys.stdout.write("".join(f"{name}\n" for name in found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
