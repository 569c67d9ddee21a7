"""Reads the commands that the pages show: those of `edge`, and the programs of others."""

import re
import shlex
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

from msgspec import Struct

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$|((?:^(?: {4}|\t)[^\n]*\n?)+)", re.MULTILINE | re.DOTALL)
_LANGUAGES = {"", "sh"}
_SHOWN = re.compile(r"(?:^|[\s(])(?:\S*bin/)?edge[ \t]+(?=\S)(.*)$", re.MULTILINE)
_NAMED = re.compile(r"(?:sudo )?(?:[A-Z_]+=\S* )*(?:\S*bin/)?edge (.+)")
_PROGRAM = re.compile(r"^\s*(?:sudo )?(?:[A-Z_]+=\S* )*([\w./-]+) ", re.MULTILINE)
_END = re.compile(r"[|;&<>#)].*|2>.*")


class PageCommand(Struct, frozen=True):
    """A command of a page: the words after `edge`. One in a block is whole; one in a sentence may lack arguments."""

    words: tuple[str, ...]
    is_whole: bool


def page_commands(page: str) -> Iterator[PageCommand]:
    """Yield the commands in the text of a page."""
    written = page.replace("\\\n", " ")
    for language, fenced, indented in _BLOCK.findall(written):
        if language in _LANGUAGES:
            yield from (PageCommand(_words(call), is_whole=True) for call in _SHOWN.findall(fenced or indented))
    for quoted in re.findall(r"`([^`\n]+)`", _BLOCK.sub("", written)):
        if match := _NAMED.fullmatch(quoted):
            yield PageCommand(_words(match[1]), is_whole=False)


def other_programs(page: str) -> Iterator[str]:
    """Yield the names of the programs with which the lines of the shell in the text of a page begin."""
    for language, fenced, indented in _BLOCK.findall(page.replace("\\\n", " ")):
        if language in _LANGUAGES:
            yield from (Path(name).name for name in _PROGRAM.findall(fenced or indented))


def _words(call: str) -> tuple[str, ...]:
    """Return the words up to the end of the command; brackets of optional ones are removed."""
    call = re.sub(r"[][]", "", call)
    try:
        words = shlex.split(call, comments=True)
    except ValueError:  # a quote that another line closes
        words = call.split()
    return tuple(takewhile(lambda word: not _END.fullmatch(word), words))
