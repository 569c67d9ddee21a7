"""`edge tags`: lists tags with their last samples, and watches samples as they come."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import json_option, open_access, open_console, print_json, settings_option

if TYPE_CHECKING:
    from edge.rules.sample_lines import Sample


@click.group()
def tags() -> None:
    """Show tags with their last samples, or watch samples as they come.

    A gateway records the samples that a rule evaluates, with `[telemetry] record = "all"` every sample. PATTERN is the
    name of a tag; * stands for any characters. The exit status is 0 on success, 1 when the store is unavailable, and 2
    when settings or arguments are invalid.
    """


@tags.command("list", epilog="Example: edge tags list 'wrench.*'")
@click.argument("pattern", default="*")
@settings_option
@json_option
def list_(pattern: str, settings_file: Path | None, *, as_json: bool) -> None:
    """List tags with their last samples, which are saved every five seconds."""
    from edge.cli.tags.view import as_data, table

    found = [each for each in asyncio.run(_load(settings_file)) if _matches(pattern, each)]
    if as_json:
        print_json([as_data(each) for each in found])
    elif found:
        open_console().print(table(found))
    else:
        print_text("no tags")


@tags.command(epilog="Example: edge tags show wrench.torque")
@click.argument("tag")
@settings_option
@json_option
def show(tag: str, settings_file: Path | None, *, as_json: bool) -> None:
    """Show the last sample of a tag."""
    from edge.cli.tags.view import as_data, report
    from edge.errors import Refused

    found = next((each for each in asyncio.run(_load(settings_file)) if each.tag == tag), None)
    if found is None:
        raise Refused("unknown_tag", f"there is no tag {tag!r}", "List the tags: edge tags list")
    if as_json:
        print_json(as_data(found))
    else:
        print_text("\n".join(report(found)))


@tags.command(epilog="Example: edge tags watch '*.torque' --json > samples.jsonl")
@click.argument("pattern", default="*")
@click.option("--count", type=click.IntRange(min=1), help="End after so many samples.  [default: until Ctrl-C]")
@settings_option
@json_option
def watch(pattern: str, count: int | None, settings_file: Path | None, *, as_json: bool) -> None:
    """Print samples as they are recorded.

    With --json the lines can be evaluated again: edge rules test RULES samples.jsonl.
    """
    from edge.cli.tags.view import line
    from edge.telemetry.batch import encode_line
    from edge.telemetry.sample_feed import follow_samples

    async def run() -> None:
        left = count
        async with open_access(settings_file) as at:
            async for sample in follow_samples(at.store):
                if not _matches(pattern, sample):
                    continue
                click.echo(encode_line(sample)) if as_json else print_text(line(sample))
                left = None if left is None else left - 1
                if left == 0:
                    return

    asyncio.run(run())


async def _load(settings_file: Path | None) -> "list[Sample]":
    from edge.rules.sample_lines import Sample, parse_line
    from edge.store.tags import load

    async with open_access(settings_file) as at:
        lines = [parse_line(text) for text in (await load(at.store)).values()]
    return [each for each in lines if isinstance(each, Sample)]


def _matches(pattern: str, sample: "Sample") -> bool:
    from edge.rules.pattern import matches

    return matches(pattern, sample.tag)
