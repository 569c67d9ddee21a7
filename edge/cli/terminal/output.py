"""Prints text without control characters, JSON, errors and findings: foreign text must not control the terminal."""

import asyncio
import contextlib
import difflib
import itertools
import shutil
import signal
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Final, NoReturn

import click
import msgspec

from edge.model.finding import HealthFinding, Level, PublicHealthFinding, public_form, worst

_JSON: Final = "edge.json"
_NARROWEST: Final = 24
"""The least width of a text that continues below itself."""
_STATUS = {Level.OK: 0, Level.WARNING: 1, Level.FAILING: 2}
_LEVEL_WIDTH = 8
READY: Final = "ready: "
"""The prefix of the line that each command of `edge sim` prints once its device is ready."""
_COLOURS = {Level.OK: "green", Level.WARNING: "yellow", Level.FAILING: "red"}


def printable(text: object) -> str:
    """Return text with every control character replaced by a blank."""
    return "".join(word if word.isprintable() else " " for word in str(text))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1: `1 job`, `2 jobs`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def wrapped(text: object, indent: int) -> str:
    """Return printable text that stands at a column and continues there on the next line of a narrow terminal.

    For a file or a pipe it stays one line. A word, such as an id, is never cut.
    """
    line = printable(text)
    if not sys.stdout.isatty():
        return line
    width = max(_NARROWEST, shutil.get_terminal_size().columns - indent)
    lines = textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
    return f"\n{'':{indent}}".join(lines)


def print_text(text: str, *, err: bool = False) -> None:
    """Print text line by line without control characters, on standard output or standard error."""
    click.echo("\n".join(map(printable, text.split("\n"))), err=err)


def print_json(data: object) -> None:
    """Print one line of JSON; data types of the model as on the wire."""
    click.echo(msgspec.json.encode(data))


def record_json(context: click.Context, arguments: Sequence[str]) -> None:
    """Record whether a command line asks for JSON: then its errors are JSON, too. What follows `--` is not its own."""
    context.meta[_JSON] = "--json" in itertools.takewhile(lambda argument: argument != "--", arguments)


def is_json() -> bool:
    """Return whether the command that runs was asked for JSON."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_JSON))


def print_failure(kind: str, reasons: Sequence[str], advice: str = "") -> None:
    """Print why a command failed, on standard error; with `--json` as an error of the HTTP API, on standard output."""
    if is_json():
        print_json({"kind": kind, "reason": "\n".join(reasons), "advice": advice})
        return
    for line in filter(None, (*reasons, advice)):
        print_text(f"edge: {line}", err=True)


def usage_failure(*reasons: str) -> NoReturn:
    """Print the faults of the arguments and exit with status 2."""
    print_failure("invalid_arguments", reasons)
    raise SystemExit(2)


def did_you_mean(word: str, known: Iterable[str], advice: str = "") -> str:
    """Return advice that begins with the name that a mistyped word is alike to, where there is one.

    >>> did_you_mean("wrnch", ["camera", "wrench"], "List the equipment: edge equipment list")
    "Did you mean 'wrench'? List the equipment: edge equipment list"
    """
    near = difflib.get_close_matches(word, list(known), n=1)
    return " ".join(filter(None, (f"Did you mean {near[0]!r}?" if near else "", advice)))


async def wait_for_stop(ready: str, within: float | None = None) -> None:
    """Print the ready line, then wait for Ctrl-C or SIGTERM, at most `within` seconds."""
    stop = asyncio.Event()
    # Before the ready line: a reader of that line may send the signal at once.
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    print_text(ready)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within):
            await stop.wait()


def print_findings(findings: Sequence[HealthFinding], *, as_json: bool) -> int:
    """Print findings as text or JSON; return the exit status."""
    level = worst(findings)
    if as_json:
        print_json({"level": level, "findings": tuple(map(public_form, findings))})
    else:
        _print_findings(tuple(map(public_form, findings)))
    return _STATUS[level]


def _print_findings(findings: Sequence[PublicHealthFinding]) -> None:
    width = max(len(finding.subject) for finding in findings)
    indent = _LEVEL_WIDTH + width + 3
    for item in findings:
        level = click.style(f"{item.level:<{_LEVEL_WIDTH}}", fg=_COLOURS[item.level])
        click.echo(f"{level} {item.subject:<{width}}  {wrapped(item.found, indent)}")
        if item.advice:
            click.echo(f"{'':{indent}}→ {wrapped(item.advice, indent + 2)}")
