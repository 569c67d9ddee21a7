"""A job as people and as programs read it: one line of a list, and everything there is to know."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from edge.model.exact_value import plain_value
from edge.model.isa95 import JobOrder, JobResponse, Parameter
from edge.model.job_state import TEXT, JobState, JobStatus
from edge.sfc.chart_marks import SYMBOLS, duration
from edge.sfc.net import Net
from edge.sfc.run import ActionState, Association, Run
from edge.store.jobs import Job

_STATE_STYLES = {
    JobState.RUNNING: "bold yellow",
    JobState.INTERRUPTED: "magenta",
    JobState.ENDED: "green",
    JobState.ABORTED: "bold red",
}
_ACTION_STYLES = {
    ActionState.DISPATCHED: "bold blue",
    ActionState.WAITING: "bold blue",
    ActionState.COMPLETED: "green",
    ActionState.FAILED: "bold red",
    ActionState.TIMED_OUT: "bold red",
}


def printable(text: object) -> str:
    """Give text without what could move a terminal's cursor: equipment and MES may have written anything."""
    return "".join(each if each.isprintable() else " " for each in str(text))


def state_text(status: JobStatus) -> str:
    """Give a state as the specification spells it, with its sub-state."""
    below = f" ({status.substate.value[0]})" if status.substate else ""
    return TEXT[status.state] + below


def instant(milliseconds: int | None) -> datetime | None:
    """Give an instant with its time zone, UTC."""
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)


def clock_time(milliseconds: int | None) -> str:
    """Give an instant as a person here reads it; nothing for none."""
    at = instant(milliseconds)
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S") if at else ""


def summary(job: Job) -> dict[str, object]:
    """Give one line of the list for a program; instants in UTC."""
    substate = job.status.substate
    return {
        "job_order_id": job.job_id,
        "scope": job.scope,
        "state": TEXT[job.status.state],
        "substate": substate.value[0] if substate else None,
        "priority": job.order.priority,
        "work_master": _work_master(job.order) or None,
        "stored_at": instant(job.stored_at),
        "started_at": instant(job.started_at),
        "ended_at": instant(job.ended_at),
        "error": job.error,
    }


def job_table(jobs: Iterable[Job]) -> Table:
    """Give the list for a person."""
    table = _table("id", "scope", "state", "priority", "Work Master", "started", "ended", "error")
    for job in jobs:
        table.add_row(
            Text(printable(job.job_id), style="bold"),
            Text(job.scope),
            _state(job.status),
            Text("" if job.order.priority is None else str(job.order.priority)),
            Text(printable(_work_master(job.order))),
            Text(clock_time(job.started_at)),
            Text(clock_time(job.ended_at)),
            Text(printable(job.error or ""), style="red"),
        )
    return table


def detail(job: Job, run: Run | None, net: Net | None, response: JobResponse | None) -> dict[str, object]:
    """Give everything for a program: order and response as they travel."""
    return {
        **summary(job),
        "correlation_id": job.correlation_id,
        "comment": job.comment,
        "order": job.order,
        "run": _run(run, net) if run and net else None,
        "response": response,
    }


def _run(run: Run, net: Net) -> dict[str, object]:
    return {
        "outcome": run.outcome,
        "paused_at": instant(run.paused_at),
        "steps": [
            {"step": name, "X": state.active, "count": state.count, "activated_at": instant(state.activated_at)}
            | {"last_T_ms": None if state.active else state.elapsed_ms}
            for name in net.steps
            if (state := run.steps.get(name))
        ],
        "actions": [
            {"action": each.action, "step": each.step, "state": each.state, "attempt": each.attempt}
            | {"sent_at": instant(each.armed_at), "deadline": instant(each.deadline)}
            | {"ended_at": instant(each.ended_at), "result": each.result, "error": each.error}
            for each in _associations(run, net)
        ],
        "variables": run.variables,
    }


def report(
    job: Job, run: Run | None, net: Net | None, response: JobResponse | None, now: int
) -> Iterator[RenderableType]:
    """Give everything for a person: the job, its order, its run, its response."""
    yield Text.assemble((printable(job.job_id), "bold"), "  ", _state(job.status), f"  in scope {job.scope}")
    yield _pairs(_facts(job))
    if run and net:
        yield _steps(run, net, now)
        yield _actions(run, net)
    if response and response.job_response_data:
        yield _heading("response")
        yield _pairs({each.id: _value(each) for each in response.job_response_data})


def _facts(job: Job) -> dict[str, str]:
    order = job.order
    lists: dict[str, Iterable[str | None]] = {
        "description": (each.text for each in order.description or ()),
        "equipment": (each.id for each in order.equipment_requirements or ()),
        "personnel": (each.id for each in order.personnel_requirements or ()),
        "physical assets": (each.id for each in order.physical_asset_requirements or ()),
        "material": (
            each.material_definition_id or each.material_class_id or each.material_lot_id or each.material_sublot_id
            for each in order.material_requirements or ()
        ),
    }
    return {
        "Work Master": _work_master(order),
        "priority": "" if order.priority is None else str(order.priority),
        **{name: ", ".join(filter(None, texts)) for name, texts in lists.items()},
        **{f"parameter {each.id}": _value(each) for each in order.job_order_parameters or ()},
        "not before": clock_time(_ms(order.start_time)),
        "to be done by": clock_time(_ms(order.end_time)),
        "stored": clock_time(job.stored_at),
        "started": clock_time(job.started_at),
        "ended": clock_time(job.ended_at),
        "comment": " / ".join(each.text for each in job.comment),
        "error": job.error or "",
    }


def _steps(run: Run, net: Net, now: int) -> Table:
    halted = run.ended_at if run.ended_at is not None else run.paused_at
    at = now if halted is None else min(now, halted)
    table = _table("step", "X", "T", "count")
    for name in net.steps:
        state = run.steps.get(name)
        active = state is not None and state.active
        table.add_row(
            Text(name, style="bold yellow" if active else "" if state else "bright_black"),
            "●" if active else "",
            duration(state.t(at)) if state else "",
            str(state.count) if state else "0",
        )
    return table


def _actions(run: Run, net: Net) -> Table:
    table = _table("action", "step", "state", "attempt", "sent", "deadline", "ended", "result")
    for each in _associations(run, net):
        state = Text(f"{SYMBOLS[each.state]} {each.state}", style=_ACTION_STYLES.get(each.state, ""))
        result = Text(printable(each.error), style="red") if each.error else Text(printable(_json(each.result)))
        times = (clock_time(each.armed_at), clock_time(each.deadline), clock_time(each.ended_at))
        table.add_row(Text(each.action), Text(each.step), state, str(each.attempt), *times, result)
    return table


def _associations(run: Run, net: Net) -> list[Association]:
    """Give the activations of actions in the order of the recipe; those left behind come after the latest."""

    def rank(key: str) -> tuple[int, str]:
        return net.actions[key.partition("/")[0]].index, key

    return [run.associations[key] for key in sorted(run.associations, key=rank)]


def _table(*columns: str) -> Table:
    table = Table(box=None, header_style="bright_black", padding=(0, 2, 0, 0), pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _pairs(facts: Mapping[str, str]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, told in facts.items():
        if told:
            table.add_row(Text(printable(name), style="cyan"), Text(printable(told)))
    return table


def _heading(text: str) -> Text:
    return Text(text, style="bright_black")


def _state(status: JobStatus) -> Text:
    return Text(state_text(status), style=_STATE_STYLES.get(status.state, ""))


def _work_master(order: JobOrder) -> str:
    return ", ".join(each.id for each in order.work_master_id or ())


def _value(parameter: Parameter) -> str:
    if parameter.subparameters:
        return ", ".join(f"{each.id} {_value(each)}" for each in parameter.subparameters)
    unit = parameter.engineering_units and parameter.engineering_units.display_name
    return _json(plain_value(parameter.value)) + (f" {unit.text}" if unit else "")


def _json(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return msgspec.json.encode(value).decode()


def _ms(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp() * 1000)
