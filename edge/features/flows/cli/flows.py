"""`edge flows`: checks a flow document, runs it in virtual time, lists the node kinds, and controls flows."""

from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import click
import msgspec

from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.operator import operator_languages
from edge.cli.terminal.output import print_json, print_text, usage_failure
from edge.cli.terminal.store_access import FILE, json_option, read_json, settings_option
from edge.drawing.svg import chart_svg
from edge.drawing.text import ANSI, PLAIN, chart_text
from edge.features.flows.cli import stored_flows
from edge.features.flows.cli.stored_flows import kinds_option, print_faults, run_with_flows
from edge.features.flows.cycle import Cycle
from edge.features.flows.cycle_service import FlowService
from edge.features.flows.graph_drawing import draw_flow
from edge.features.flows.nodes.registry import config_schema
from edge.features.flows.plan import Plan, Rejected, plan_flow
from edge.features.flows.plugins import load_kinds
from edge.features.flows.ports.tags import SampleHistory
from edge.features.flows.public_flow import PublicCycle
from edge.features.flows.public_form import load_cycle
from edge.features.flows.trial import TrialInput, public_trial, run_trial
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.text import Text, language_for
from edge.ports.sample_lines import Sample, read_lines

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(epilog="Example: edge flows draw --flow press-report -o press-report.svg")
@click.argument("file", metavar="FLOW", type=FILE, required=False)
@click.option("--flow", "flow_id", metavar="ID", help="Draw this flow of the store, with the states of its nodes.")
@click.option("--cycle", type=click.IntRange(min=0), help="Number of the cycle.  [default: the last]")
@click.option("-o", "--output", type=_FILE, help="Write a file: SVG when its name ends with .svg, else Unicode.")
@kinds_option
@settings_option
def draw(
    file: Path | None,
    flow_id: str | None,
    cycle: int | None,
    output: Path | None,
    kinds_folder: str | None,
    settings_file: Path | None,
) -> None:
    """Draw a flow as a graph.

    FLOW holds the flow as JSON; - is standard input. Colours and words show the state of each node, with the reason of
    a failure or the beginning of its output. The exit status is 2 when the flow has faults.
    """
    if (file is None) == (flow_id is None):
        raise click.UsageError("Name either a FLOW file or a --flow.")
    if file is not None:
        _write(_plan_of_file(file, kinds_folder), None, output)
    elif flow_id is not None:
        plan, drawn = run_with_flows(settings_file, lambda service: _stored(service, flow_id, cycle))
        _write(plan, drawn, output)


def _plan_of_file(file: Path, kinds_folder: str | None) -> Plan:

    plan = plan_flow(read_json(file), load_kinds(kinds_folder or ""))
    if isinstance(plan, Rejected):
        print_faults(str(file), plan.faults)
        raise SystemExit(2)
    return plan


async def _stored(service: FlowService, flow_id: str, number: int | None) -> tuple[Plan, Cycle | None]:
    """Return the plan of a flow of the store with a cycle that still fits it."""
    flow = await service.load(flow_id)
    plan = service.plan_of(flow)
    if not isinstance(plan, Plan):
        raise Refused(
            "unknown_kind", Text.of("flow {flow_id!r} has node kinds that are not installed here.", flow_id=flow_id)
        )
    record = await load_cycle(service, flow, number)
    # The flow may have been replaced since its last cycle.
    fits = record is not None and record.cycle.tasks.keys() == plan.nodes.keys()
    return plan, record.cycle if record and fits else None


def _write(plan: Plan, cycle: Cycle | None, output: Path | None) -> None:

    drawing = draw_flow(plan, cycle)
    if output is None:
        # click removes the colours when the output is not a terminal.
        click.echo("\n".join(chart_text(drawing, ANSI)))
        return
    is_svg = output.suffix.lower() == ".svg"
    document = chart_svg(drawing) if is_svg else "\n".join(chart_text(drawing, PLAIN)) + "\n"
    try:
        output.write_text(document, encoding="utf-8")
    except OSError as error:
        message = Text.of("{output}: cannot be written: {reason}", output=output, reason=error.strerror)
        raise Unavailable(message, "Name a file where you may write.") from error


@click.group(cls=CommandGroup)
def flows() -> None:
    """Check, try, run and watch flows: cyclic work next to the jobs.

    `put`, `list`, `show`, `draw`, `start`, `stop`, `terminate`, `delete` and `watch` work on the store of the settings,
    while gateways with `[flows] run = "on"` run on it. The exit status is 0 on success, 1 when a request is refused or
    the store is unavailable, and 2 when settings or arguments are invalid.
    """


for _command in (
    stored_flows.put,
    stored_flows.list_,
    stored_flows.show,
    draw,
    stored_flows.start,
    stored_flows.stop,
    stored_flows.terminate,
    stored_flows.delete,
    stored_flows.watch,
):
    flows.add_command(_command)


@flows.command(epilog="Example: edge flows check press-report.json --json")
@click.argument("file", metavar="FLOW", type=FILE)
@kinds_option
@json_option
def check(file: Path, kinds_folder: str | None, *, as_json: bool) -> None:
    """Check a flow and show its structure.

    FLOW holds the flow as JSON; - is standard input. All faults are reported at once. The exit status is 0 when there
    is none, else 2.
    """
    plan = _read_plan(file, kinds_folder, as_json=as_json)
    _print_structure(plan, as_json=as_json)


@flows.command(epilog="Example: edge flows test press-report.json --tags samples.jsonl --cycles 3 --json")
@click.argument("file", metavar="FLOW", type=FILE)
@click.option("--tags", "tags_file", type=FILE, metavar="SAMPLES", help="Samples of the tags, one JSON object a line.")
@click.option("--cycles", type=click.IntRange(min=1), default=1, show_default=True, help="Number of cycles to run.")
@click.option("--start", type=int, default=0, show_default=True, help="Start, in milliseconds since the epoch.")
@click.option("--stop", "stops", multiple=True, metavar="COMPONENT@CYCLE", help="Stop a component before a cycle.")
@click.option("--terminate", "terminations", multiple=True, metavar="NODE@CYCLE", help="Terminate a node at its start.")
@kinds_option
@json_option
def test(
    file: Path,
    tags_file: Path | None,
    cycles: int,
    start: int,
    stops: tuple[str, ...],
    terminations: tuple[str, ...],
    kinds_folder: str | None,
    *,
    as_json: bool,
) -> None:
    """Run a flow in virtual time.

    FLOW holds the flow as JSON; - is standard input. One line is printed for each cycle. Nothing is stored and nothing
    outside is changed: a node that acts reports what it would do. COMPONENT is the index of a component as `edge flows
    check` lists them. The exit status is 0 however the cycles end, and 2 when the flow has faults or an option names
    something unknown.
    """
    plan = _read_plan(file, kinds_folder, as_json=as_json)
    history = _read_history(tags_file) if tags_file else SampleHistory({})
    trial_input = TrialInput(history, _stopped(plan, stops), _terminated(plan, terminations))
    for cycle in run_trial(plan, trial_input, cycles, start):
        public_cycle = public_trial(cycle, language_for(operator_languages()))
        if as_json:
            print_json(public_cycle)
        else:
            _print_cycle(public_cycle)


@flows.command(epilog="Example: edge flows kinds --json")
@kinds_option
@json_option
def kinds(kinds_folder: str | None, *, as_json: bool) -> None:
    """List the node kinds with their inputs; with --json also the JSON Schema of each configuration."""
    values_view = load_kinds(kinds_folder or "").values()
    if as_json:
        print_json(
            [
                {
                    "kind": kind.name,
                    "summary": kind.summary,
                    "inputs": kind.inputs.value,
                    "repeatable": kind.repeatable,
                    "in_worker": kind.in_worker,
                    "config": config_schema(kind),
                }
                for kind in values_view
            ]
        )
        return
    for kind in values_view:
        print_text(f"{kind.name:20}  {kind.inputs.value:5}  {kind.summary}")


def _read_plan(file: Path, kinds_folder: str | None, *, as_json: bool) -> Plan:
    """Return the plan of a flow; faults are printed and end the command with status 2."""
    match plan_flow(read_json(file), load_kinds(kinds_folder or "")):
        case Rejected(faults=faults):
            if as_json:
                print_json({"faults": faults, "components": [], "entry_nodes": [], "order": []})
            else:
                print_faults(str(file), faults)
            raise SystemExit(2)
        case plan:
            return plan


def _print_structure(plan: Plan, *, as_json: bool) -> None:
    if as_json:
        print_json({"faults": [], "components": plan.components, "entry_nodes": plan.entry_nodes, "order": plan.layers})
        return
    for index, component in enumerate(plan.components):
        print_text(f"component {index}: {', '.join(component)}")
    for index, layer in enumerate(plan.layers):
        print_text(f"layer {index}: {', '.join(layer)}")
    print_text(f"{plan.id}: no faults, {len(plan.nodes)} node{'' if len(plan.nodes) == 1 else 's'}")


def _read_history(file: Path) -> SampleHistory:

    try:
        with click.open_file(str(file), encoding="utf-8", errors="replace") as lines:
            found = read_lines(lines, lambda number, reason: _report_line(file, number, reason))
            return SampleHistory.of(line for line in found if isinstance(line, Sample))
    except OSError as error:
        usage_failure(f"{file}: cannot be read: {error.strerror}")


def _report_line(file: Path, number: int, reason: str) -> None:
    print_text(f"{file}:{number}: line set aside: {reason}", err=True)


def _stopped(plan: Plan, options: tuple[str, ...]) -> Mapping[int, frozenset[int]]:
    found: dict[int, frozenset[int]] = {}
    for option in options:
        name, cycle = _at_cycle("--stop", option)
        if not name.isdecimal() or int(name) >= len(plan.components):
            _unknown("--stop", f"component {name!r}; the flow has {len(plan.components)}, counted from 0")
        found[cycle] = found.get(cycle, frozenset()) | {int(name)}
    return found


def _terminated(plan: Plan, options: tuple[str, ...]) -> Mapping[int, frozenset[str]]:
    found: dict[int, frozenset[str]] = {}
    for option in options:
        name, cycle = _at_cycle("--terminate", option)
        if name not in plan.nodes:
            _unknown("--terminate", f"node {name!r}; the flow has {', '.join(plan.nodes)}")
        found[cycle] = found.get(cycle, frozenset()) | {name}
    return found


def _at_cycle(option: str, text: str) -> tuple[str, int]:
    name, separator, cycle = text.rpartition("@")
    if not separator or not cycle.isdecimal():
        usage_failure(f"{option} {text}: expected NAME@CYCLE, with the number of a cycle from 0")
    return name, int(cycle)


def _unknown(option: str, what: str) -> NoReturn:
    usage_failure(f"{option}: there is no {what}")


def _print_cycle(cycle: PublicCycle) -> None:
    print_text(f"cycle {cycle.number} at {cycle.at}: {cycle.status}")
    width = max((len(node.node) for node in cycle.nodes), default=0)
    for node in cycle.nodes:
        detail = node.reason or msgspec.json.encode(node.output).decode()
        print_text(f"  {node.node:{width}}  {node.status:10}  {detail}")
