"""Writes the manual pages from what the program says of itself: edge(1), microdcs-edge(8) and edge.toml(5).

python debian/manual_pages.py DIRECTORY
"""

import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints

import click
import msgspec

from edge import __version__
from edge.app.features import declared_sections
from edge.cli import main as edge
from edge.config import load
from edge.config.value import expected, meaning


def main(directory: Path) -> None:
    """Write every page."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, lines in (("edge.1", edge_1()), ("microdcs-edge.8", microdcs_edge_8()), ("edge.toml.5", edge_toml_5())):
        (directory / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def edge_1() -> Iterator[str]:
    """Yield the page of the command with all its subcommands."""
    yield from heading("edge", 1, summary(edge))
    yield from [".SH SYNOPSIS", r"\fBedge\fR \fICOMMAND\fR [\fIARGUMENTS\fR]"]
    yield from [".SH COMMANDS", *commands(edge, None, "edge")]
    yield from [".SH EXIT STATUS", "0 when it is done, 1 when it cannot be done now, 2 when input is wrong."]
    yield from see_also("microdcs-edge(8)", "edge.toml(5)")


def microdcs_edge_8() -> Iterator[str]:
    """Yield the page of the service: the command `run` and its files on an installed gateway."""
    context = click.Context(edge, info_name="microdcs-edge")
    run = command_of(edge, context, "run")
    yield from heading("microdcs-edge", 8, "gateway service: " + summary(run))
    yield from [".SH SYNOPSIS", r"\fBsystemctl enable --now microdcs-edge\fR", ".PP"]
    yield r"\fBmicrodcs-edge run\fR [\fIOPTIONS\fR]"
    yield from [".SH DESCRIPTION", *paragraphs(summary(edge) + ".\n\n" + (run.help or "")), ".SH OPTIONS"]
    yield from options(run, click.Context(run, parent=context, info_name="run"))
    yield ".SH FILES"
    for path, description in FILES.items():
        yield from [".TP", rf"\fI{escaped(path)}\fR", inline(description)]
    yield from see_also("edge(1)", "edge.toml(5)", "journalctl(1)")


FILES = {
    "/etc/microdcs-edge/edge.toml": "Settings; conf.d/*.toml next to it override them.",
    "/etc/microdcs-edge/passwords/": "Files of passwords for root to read; `mqtt` is the credential `password_mqtt`.",
    "/etc/microdcs-edge/station.d/": "Work Masters, lists, rules and flows that fill an empty store.",
    "/etc/microdcs-edge/opcua-users": "Users of OPC UA and the command line; `edge users` writes them.",
    "/etc/microdcs-edge/opcua-trusted/": "Certificates of OPC UA clients we trust; `edge opcua trust` adds one.",
    "/var/lib/microdcs-edge/pki/": "Our own certificate and its key, made at the first start.",
    "/etc/microdcs-edge/store.conf": "The gateway's own Redis instance, redis-server@microdcs.service.",
    "/var/lib/redis-microdcs/": "Its data: every decision.",
    "/var/lib/microdcs-edge-line/": "Reports of repairs of the store of a line on this machine.",
    "/etc/microdcs-edge/telemetry-store.conf": "The Redis instance for samples in memory, used on SD cards.",
}


def edge_toml_5() -> Iterator[str]:
    """Yield the page of every section and key."""
    yield from heading("edge.toml", 5, "settings of microdcs-edge")
    yield from [".SH DESCRIPTION", *paragraphs(inspect.getdoc(load) or "")]
    for cls in sections():
        title, _, description = (inspect.getdoc(cls) or "").partition(": ")
        yield from [f".SH {escaped(title.strip('`'))}", inline(description[:1].upper() + description[1:])]
        hints = get_type_hints(cls, include_extras=True)
        for field in msgspec.structs.fields(cls):
            given = {} if field.default is msgspec.NODEFAULT else field.default
            default = "required" if field.required else f"default {json.dumps(given)}"
            value = str(expected(hints[field.name]))
            yield from [".TP", rf"\fB{escaped(field.name)}\fR", inline(meaning(hints[field.name]))]
            yield from [".br", inline(f"{value[:1].upper()}{value[1:]}; {default}.")]
    yield from see_also("edge(1)", "microdcs-edge(8)")


def sections() -> Iterator[type[msgspec.Struct]]:
    """Yield every section in its order, the one of equipment once for each kind."""
    for name, section in declared_sections().items():
        if name == "southbound":
            yield from map(section.keys_of, section.kinds)
        else:
            yield section.keys


def heading(name: str, section: int, description: str) -> list[str]:
    """Return the title line and the NAME of a page."""
    title = f'.TH {name.upper()} {section} "" "microdcs-edge {__version__}"'
    return [title, ".SH NAME", rf"{escaped(name)} \- {escaped(description[:1].lower() + description[1:])}"]


def see_also(*pages: str) -> list[str]:
    """Return links to other pages, such as `edge(1)`."""
    return [".SH SEE ALSO", ", ".join(re.sub(r"^(.*)(\(\d\))$", r"\\fB\1\\fR\2", page) for page in pages)]


def summary(command: click.Command) -> str:
    """Return the first sentence of a command's help, without its full stop."""
    return (command.help or "").split("\n\n")[0].replace("\n", " ").rstrip(".")


def commands(group: click.Group, parent: click.Context | None, name: str) -> Iterator[str]:
    """Yield every command below a group, in the order in which the group lists them."""
    context = click.Context(group, parent=parent, info_name=name)
    for text in group.list_commands(context):
        command = command_of(group, context, text)
        below = click.Context(command, parent=context, info_name=text)
        if isinstance(command, click.Group):
            yield from [f".SS {escaped(below.command_path)}", *paragraphs(command.help or "")]
            yield from commands(command, context, text)
            continue
        usage = " ".join(command.collect_usage_pieces(below))
        yield from [f".SS {escaped(below.command_path)} {escaped(usage)}", *paragraphs(command.help or "")]
        yield from options(command, below)
        if command.epilog:
            yield from [".PP", *paragraphs(command.epilog)]


def command_of(group: click.Group, context: click.Context, name: str) -> click.Command:
    """Return a command that the group lists."""
    command = group.get_command(context, name)
    if command is None:
        raise LookupError(f"{context.command_path} lists {name}, which is not there")
    return command


def options(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield the options and arguments of a command."""
    for parameter in command.params:
        if record := parameter.get_help_record(context):
            yield from [".TP", rf"\fB{escaped(record[0])}\fR", inline(record[1])]


def paragraphs(text: str) -> Iterator[str]:
    """Yield text for people: paragraphs stay paragraphs; preformatted lines stay as they are."""
    for number, block in enumerate(inspect.cleandoc(text).split("\n\n")):
        if number:
            yield ".PP"
        if block.startswith(("\b", " ")):
            yield from [".nf", *(escaped(line) for line in block.strip("\b\n").splitlines()), ".fi"]
        else:
            yield inline(block.replace("\n", " "))


def inline(text: str) -> str:
    """Return one paragraph; text between backticks is bold."""
    return re.sub(r"`([^`]*)`", r"\\fB\1\\fR", escaped(text))


def escaped(text: str) -> str:
    """Return text with the characters of troff escaped."""
    plain = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{plain}" if plain.startswith((".", "'")) else plain


if __name__ == "__main__":
    main(Path(sys.argv[1]))
