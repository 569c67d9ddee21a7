"""Formats jobs: as a table, as a report of a whole job with its order, run and response, and as data."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

import msgspec
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from edge.cli.terminal.output import printable
from edge.cli.terminal.table import local_time, plain_table
from edge.drawing.marks import SYMBOLS, duration
from edge.model.instant import milliseconds, rfc3339
from edge.model.isa95 import Parameter
from edge.model.job_state import TEXT, JobState, JobStatus
from edge.model.json_value import plain_value
from edge.model.result_part import parts_of
from edge.ports.result_trace import Reference, TraceReference, stored_in
from edge.sfc.identifiers import AssociationKey
from edge.sfc.net import Net
from edge.sfc.run import ActionState, Association, Run, Sending
from edge.station.public_job import public_detail, work_masters
from edge.station.stored_job import StoredJob
from edge.store.jobs import Job

_STATE_STYLES = {
    JobState.RUNNING: "bold yellow",
    JobState.INTERRUPTED: "magenta",
    JobState.ENDED: "green",
    JobState.ABORTED: "bold red",
}


def state_text(status: JobStatus) -> str:
    """Return a state in the spelling of OPC 10031-4, with its sub-state."""
    below = f" ({status.substate.value[0]})" if status.substate else ""
    return TEXT[status.state] + below


_COLUMNS: Mapping[str, Callable[[Job], Text]] = MappingProxyType(
    {
        "id": lambda job: Text(printable(job.job_id), style="bold"),
        "scope": lambda job: Text(job.scope),
        "state": lambda job: state_cell(job.status),
        "priority": lambda job: Text("" if job.order.priority is None else str(job.order.priority)),
        "Work Master": lambda job: Text(printable(work_masters(job.order))),
        "started": lambda job: Text(local_time(job.started_at)),
        "ended": lambda job: Text(local_time(job.ended_at)),
        "error": lambda job: Text(printable(str(job.error or "")), style="red"),
    }
)
"""The columns of a list of jobs, each with its cell."""


def job_table(jobs: Iterable[Job]) -> Table:
    """Return jobs as a table."""
    table = plain_table(*_COLUMNS, drop=("scope", "priority", "started", "Work Master", "ended"), empty="no jobs")
    for job in jobs:
        table.add_row(*(cell(job) for cell in _COLUMNS.values()))
    return table


def state_cell(status: JobStatus) -> Text:
    """Return a coloured state."""
    return Text(state_text(status), style=_STATE_STYLES.get(status.state, ""))


def result_text(result: Any) -> str:
    """Return the evaluation, the values, the number of parts and the traces of a result; its data when it has none."""
    known = result if isinstance(result, Mapping) else {}
    measured = ((name, known.get(name)) for name in ("torque", "angle"))
    values = [f"{name} {_measured(value)}" for name, value in measured if isinstance(value, Mapping)]
    traces = [f"{_kind(found)} {found.size} bytes" for found in stored_in(result)]
    parts = len(parts_of(result))
    count = f"{parts} {'part' if parts == 1 else 'parts'}" if parts else ""
    return ", ".join(filter(None, [str(known.get("evaluation") or ""), *values, count, *traces])) or data_text(result)


def member_lines(data: Any, path: str = "") -> Iterator[str]:
    """Yield the members of data, one a line, those of objects by their path: `bead.width: 3.1 mm`."""
    match data:
        case {"value": value, "unit": str()} if not isinstance(value, Mapping):
            yield f"{path}: {_measured(data)}"
        case Mapping():
            for name, member in data.items():
                yield from member_lines(member, f"{path}.{name}" if path else str(name))
        case _:
            yield f"{path}: {data_text(data)}" if path else data_text(data)


def data_text(value: Any) -> str:
    """Return data as JSON with spaces, at which a narrow terminal breaks it; a text as it is."""
    if value is None or isinstance(value, str):
        return value or ""
    return msgspec.json.format(msgspec.json.encode(value), indent=0).decode()


def _kind(reference: Reference) -> str:
    return "trace" if isinstance(reference, TraceReference) else f"file {reference.media_type}"


def _measured(value: Mapping[str, Any]) -> str:
    return f"{value.get('value')} {value.get('unit', '')}".rstrip()


_ACTION_COLUMNS = ("action", "step", "state", "attempt", "sent", "deadline", "ended", "result")
_ACTION_STYLES = {
    ActionState.DISPATCHED: "bold blue",
    ActionState.WAITING: "bold blue",
    ActionState.COMPLETED: "green",
    ActionState.FAILED: "bold red",
    ActionState.TIMED_OUT: "bold red",
    ActionState.UNKNOWN: "bold yellow",
}


def show_json(stored: StoredJob, now: int, equipment: Mapping[str, str]) -> dict[str, object]:
    """Return the public form of a job with what only this command has; order and response as on the wire."""
    job, run = stored.job, stored.run
    return {
        **msgspec.structs.asdict(public_detail(stored, now, equipment=equipment)),
        "correlation_id": job.correlation_id,
        "comment": job.comment,
        "order": job.order,
        "outcome": run.outcome if run else None,
        "paused_at": rfc3339(run.paused_at) if run else None,
        "variables": run.variables if run else None,
        "response": stored.response,
    }


def report(stored: StoredJob, now: int) -> Iterator[RenderableType]:
    """Yield the report of a job: state, order, run, response."""
    job = stored.job
    yield Text.assemble((printable(job.job_id), "bold"), "  ", state_cell(job.status), f"  in scope {job.scope}")
    yield _pairs(_facts(job))
    if stored.run and stored.net:
        yield _steps(stored.run, stored.net, now)
        yield _actions(stored.run, stored.net, stored.unsent)
    response = stored.response
    if response and response.job_response_data:
        yield _heading("response")
        yield _pairs({parameter.id: _value(parameter) for parameter in response.job_response_data})


def _facts(job: Job) -> dict[str, str]:
    order = job.order
    lists: dict[str, Iterable[str | None]] = {
        "description": (localized_text.text for localized_text in order.description or ()),
        "equipment": (requirement.id for requirement in order.equipment_requirements or ()),
        "personnel": (requirement.id for requirement in order.personnel_requirements or ()),
        "physical assets": (requirement.id for requirement in order.physical_asset_requirements or ()),
        "material": (
            requirement.material_definition_id
            or requirement.material_class_id
            or requirement.material_lot_id
            or requirement.material_sublot_id
            for requirement in order.material_requirements or ()
        ),
    }
    return {
        "Work Master": work_masters(order),
        "Revision": f"{job.recipe.revision} ({job.recipe.hash})" if job.recipe.revision else "",
        "priority": "" if order.priority is None else str(order.priority),
        **{name: ", ".join(filter(None, texts)) for name, texts in lists.items()},
        **{f"parameter {parameter.id}": _value(parameter) for parameter in order.job_order_parameters or ()},
        "earliest start": local_time(_ms(order.start_time)),
        "due": local_time(_ms(order.end_time)),
        "stored": local_time(job.stored_at),
        "started": local_time(job.started_at),
        "ended": local_time(job.ended_at),
        "comment": " / ".join(localized_text.text for localized_text in job.comment),
        "error": str(job.error or ""),
    }


def _steps(run: Run, net: Net, now: int) -> Table:
    halted = run.ended_at if run.ended_at is not None else run.paused_at
    at = now if halted is None else min(now, halted)
    table = plain_table("step", "X", "T", "count")
    for name in net.steps:
        state = run.steps.get(name)
        active = state is not None and state.active
        table.add_row(
            Text(printable(name), style="bold yellow" if active else "" if state else "bright_black"),
            "●" if active else "",
            duration(state.t(at)) if state else "",
            str(state.count) if state else "0",
        )
    return table


def _actions(run: Run, net: Net, unsent: Mapping[str, Sending]) -> Table:
    table = plain_table(*_ACTION_COLUMNS, drop=("deadline", "step", "sent", "attempt", "ended"))
    for item in _associations(run, net):
        state = Text(f"{SYMBOLS[item.state]} {item.state}", style=_ACTION_STYLES.get(item.state, ""))
        result = (
            Text(printable(str(item.error)), style="red") if item.error else Text(printable(result_text(item.result)))
        )
        times = (_sent_at(item, unsent), local_time(item.deadline), local_time(item.ended_at))
        table.add_row(
            Text(printable(item.action)), Text(printable(item.step)), state, str(item.attempt), *times, result
        )
    return table


def _sent_at(association: Association, unsent: Mapping[str, Sending]) -> str:
    match unsent.get(association.command_id):
        case Sending.NOT_YET:
            return local_time(None)
        case Sending.MAYBE:
            return f"{local_time(association.sent_at)} ?"
        case _:
            return local_time(association.sent_at)


def _associations(run: Run, net: Net) -> list[Association]:
    """Return the activations of actions in the order of the recipe, superseded ones after the latest."""

    def rank(key: AssociationKey) -> tuple[int, AssociationKey]:
        return net.actions[key.latest].index, key

    return [run.associations[key] for key in sorted(run.associations, key=rank)]


def _pairs(facts: Mapping[str, str]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, text in facts.items():
        if text:
            table.add_row(Text(printable(name), style="cyan"), Text(printable(text)))
    return table


def _heading(text: str) -> Text:
    return Text(text, style="bright_black")


def _value(parameter: Parameter) -> str:
    if parameter.subparameters:
        separator = "; " if any(subparameter.subparameters for subparameter in parameter.subparameters) else ", "
        return separator.join(f"{subparameter.id} {_value(subparameter)}" for subparameter in parameter.subparameters)
    unit = parameter.engineering_units and parameter.engineering_units.display_name
    return data_text(plain_value(parameter.value)) + (f" {unit.text}" if unit else "")


def _ms(at: datetime | None) -> int | None:
    return None if at is None else milliseconds(at)
