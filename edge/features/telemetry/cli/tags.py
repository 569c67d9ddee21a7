"""`edge tags`: lists tags with their last samples, watches samples as they come, and exports history."""

import asyncio
import os
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import structs
from msgspec.structs import replace
from rich.table import Table
from rich.text import Text as RichText

from edge.app.features import gateway_settings
from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.output import counted, did_you_mean, print_text, printable, usage_failure
from edge.cli.terminal.store_access import (
    CommandOutput,
    StoreAccess,
    json_option,
    run_on_store,
    settings_option,
    store_command,
)
from edge.cli.terminal.table import local_time, plain_table, wide_option
from edge.config import Settings
from edge.features.telemetry.cli.tag_history import Trend, parse_instant, trend_of, write_samples
from edge.features.telemetry.definitions import read_definitions
from edge.features.telemetry.history.reader import read_samples
from edge.features.telemetry.model.public_tag import public_tag
from edge.features.telemetry.sample_store import follow_samples, open_volatile
from edge.features.telemetry.settings import TelemetrySettings
from edge.foundation.errors import Refused, SettingsError, unwrap_group
from edge.foundation.instant import now_ms
from edge.foundation.task_group import background_task
from edge.foundation.text import Text
from edge.ports.batch import encode_line
from edge.ports.sample_lines import Sample, parse_line
from edge.ports.tag import TagDefinition, TagDefinitions, decode_definitions, matches
from edge.store.resources import TAGS
from edge.store.stream_of_samples import load_last

if TYPE_CHECKING:
    from edge.features.telemetry.cli.tag_history import Trend


def _shown(value: object) -> object:
    """Return a value for a person: truth values as JSON and rules spell them."""
    return str(value).lower() if isinstance(value, bool) else value


def table(samples: Iterable[Sample], definitions: TagDefinitions | None = None) -> Table:
    """Return samples as a table, with the units of their definitions."""
    fitted_table = plain_table("tag", "value", "unit", "quality", "process", "at", empty="no tags")
    for sample in samples:
        tag_definition = definitions.find(sample.tag) if definitions else None
        unit = tag_definition.unit if tag_definition else ""
        cells = (
            sample.tag,
            _shown(sample.value),
            unit,
            sample.quality.value,
            sample.process or "",
            local_time(sample.at),
        )
        fitted_table.add_row(*(RichText(printable(cell)) for cell in cells))
    return fitted_table


def report(sample: Sample, definition: TagDefinition | None = None) -> Iterator[str]:
    """Yield the report of a sample with the definition of its tag, line by line."""
    facts = structs.asdict(public_tag(sample, definition)) | {"at": local_time(sample.at)}
    width = max(len(name) for name, fact in facts.items() if fact not in {None, ""})
    for name, fact in facts.items():
        if fact not in {None, ""}:
            yield f"{name:<{width}}  {printable(_shown(fact))}"


def trend_data(trend: "Trend | None") -> dict[str, object]:
    """Return the trend of a tag as data; nothing without one."""
    if trend is None:
        return {}
    return {"trend": {"hours": 24, "count": trend.count, "min": trend.least, "mean": trend.mean, "max": trend.largest}}


def trend_report(trend: "Trend | None") -> Iterator[str]:
    """Yield the trend of a tag, line by line."""
    if trend is not None:
        yield f"24 h     {trend.bars}"
        samples = counted(trend.count, "sample")
        yield f"         min {trend.least:g}, mean {trend.mean:g}, max {trend.largest:g}, {samples}"


def sample_line(sample: Sample) -> str:
    """Return a sample in one line."""
    process = f"  [{sample.process}]" if sample.process else ""
    quality = "" if sample.quality.value == "good" else f"  {sample.quality.value}"
    return f"{local_time(sample.at)}  {sample.tag}  {_shown(sample.value)}{quality}{process}"


_TREND_MS = 86_400_000


@click.group(cls=CommandGroup)
def tags() -> None:
    """Show tags with their last samples, watch samples, or export history.

    A gateway records the samples that a rule evaluates, with `[telemetry] record = "all"` every sample. PATTERN is the
    name of a tag; * matches any characters. The exit status is 0 on success, 1 when the store is unavailable, and 2
    when settings or arguments are invalid.
    """


@tags.command("list", epilog="Example: edge tags list 'wrench.*'")
@click.argument("pattern", default="*")
@wide_option
@store_command
async def list_(at: StoreAccess, pattern: str) -> CommandOutput:
    """List tags with their last samples, which are saved every five seconds."""
    samples = [sample for sample in await _load(at) if matches(pattern, sample.tag)]
    tag_definitions = await _definitions(at)
    data = [public_tag(sample, tag_definitions.find(sample.tag)) for sample in samples]
    return CommandOutput(data, table(samples, tag_definitions))


@tags.command(epilog="Example: edge tags show wrench.torque")
@click.argument("tag")
@store_command
async def show(at: StoreAccess, tag: str) -> CommandOutput:
    """Show the last sample of a tag, and its trend of the last 24 hours where history is kept."""
    last = next((sample for sample in await _load(at) if sample.tag == tag), None)
    if last is None:
        advice = did_you_mean(tag, {sample.tag for sample in await _load(at)}, "List the tags: edge tags list")
        raise Refused("unknown_tag", Text.of("there is no tag {tag!r}", tag=tag), advice)
    trend, tag_definition = _trend(tag, at.settings), (await _definitions(at)).find(tag)
    return CommandOutput(
        structs.asdict(public_tag(last, tag_definition)) | trend_data(trend),
        "\n".join([*report(last, tag_definition), *trend_report(trend)]),
    )


@tags.command(epilog="Example: edge tags export 'wrench.*' --from 8h --output wrench.csv")
@click.argument("patterns", nargs=-1, required=True, metavar="TAG...")
@click.option("--from", "start", default="1d", show_default=True, help="First instant: ISO 8601, or a time before now.")
@click.option("--to", "end", default="0s", show_default=True, help="Instant after the last one, in the same form.")
@click.option("--format", "form", type=click.Choice(["csv", "json", "arrow"]), default="csv", show_default=True)
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="File.  [default: standard output]")
@settings_option
def export(
    patterns: tuple[str, ...], start: str, end: str, form: str, output: Path | None, settings_file: Path | None
) -> None:
    """Export the samples that history keeps.

    TAG is the name of a tag; * matches any characters. `json` is one sample per line in the form of `edge rules
    test`, `arrow` a stream of Arrow record batches. The newest samples are written after `[telemetry]
    history_interval` seconds. The exit status is 0 on success, 2 when settings or arguments are invalid or no history
    is kept.
    """
    now = now_ms()
    first, last = parse_instant(start, now), parse_instant(end, now)
    directory = _history(gateway_settings(settings_file))
    if directory is None:
        usage_failure('no history is kept. Set [telemetry] history_days, and record = "all" for tags without a rule.')
    count = write_samples(read_samples(directory, patterns, first, last), form, output)
    if not count:
        print_text(
            "edge: no samples of these tags and times are kept on this machine. "
            "History is on the machine of the gateway that evaluates the rules.",
            err=True,
        )
    if output is not None:
        print_text(f"{counted(count, 'sample')} in {output}")


@tags.command(epilog="Example: edge tags watch '*.torque' --json > samples.jsonl")
@click.argument("pattern", default="*")
@click.option("--count", type=click.IntRange(min=1), help="End after so many samples.  [default: until Ctrl-C]")
@settings_option
@json_option
def watch(pattern: str, count: int | None, settings_file: Path | None, *, as_json: bool) -> None:
    """Print samples as they are recorded.

    With --json the lines can be evaluated again: edge rules test RULES samples.jsonl.
    """

    async def run(at: StoreAccess) -> None:
        printed, enough = 0, asyncio.Event()

        def print_sample(sample: Sample) -> None:
            nonlocal printed
            if enough.is_set() or not matches(pattern, sample.tag):
                return
            click.echo(encode_line(sample)) if as_json else print_text(sample_line(sample))
            printed += 1
            if printed == count:
                enough.set()

        async with open_volatile(at.settings, "") as volatile:
            stores = [at.store, volatile] if volatile else [at.store]
            async with background_task(follow_samples(stores, print_sample), "samples"):
                await enough.wait()

    with unwrap_group():
        run_on_store(settings_file, run)


async def _definitions(at: StoreAccess) -> TagDefinitions:
    """Return the definitions of tags of the settings and of the store. Raises SettingsError and Unavailable."""
    definitions = read_definitions(at.settings.section(TelemetrySettings).tags)
    definitions.use_stored(decode_definitions((await TAGS.load(at.store)).texts.values()))
    return definitions


def _history(settings: Settings) -> Path | None:
    """Return the directory of history; None when none is kept. Raises Refused when it cannot be read."""
    telemetry = settings.section(TelemetrySettings)
    directory = Path(telemetry.history_directory)
    if not telemetry.history_days:
        return None
    if directory.exists() and not os.access(directory, os.R_OK | os.X_OK):
        raise Refused(
            "forbidden", Text.of("{directory} cannot be read by this user", directory=directory), "Call edge as root."
        )
    if find_spec("nanoarrow") is None:
        problem = "telemetry.history_days: needs a library that is not installed"
        raise SettingsError([problem], "Install it: pip install 'microdcs-edge[history]'")
    return directory


def _trend(tag: str, settings: Settings) -> Trend | None:
    directory = _history(settings)
    if directory is None:
        return None
    end = now_ms()
    start = end - _TREND_MS
    return trend_of(read_samples(directory, (tag,), start, end), start, end)


async def _load(at: StoreAccess) -> list[Sample]:
    lines = {name: parse_line(text) for name, text in (await load_last(at.store)).items()}
    return [replace(line, tag=name) for name, line in lines.items() if isinstance(line, Sample)]
