"""Describes the status of a flow in lines of text."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from edge.model.instant import utc

_BAR: Final = 20
_ENDED: Final = ("completed", "failed", "terminated", "skipped")
_LONGEST_DETAIL: Final = 100


def flow_lines(flow: Mapping[str, Any]) -> Iterator[str]:
    """Yield state, schedule, counts and components of a flow."""
    yield f"{flow['id']}: {flow['status']}" + (f" ({flow['reason']})" if flow["reason"] else "")
    ended = ", ".join(f"{count} {status}" for status, count in flow["ended"].items()) or "none"
    yield f"schedule: {_schedule(flow['config'])}; next cycle: {_instant(flow['next_execution'])}"
    yield f"cycles: {ended}; {flow['missed']} missed"
    components = flow["structure"]["components"] if flow["structure"] else ()
    for index, component in enumerate(components):
        yield f"component {index}: {', '.join(component)}"


def cycle_lines(cycle: Mapping[str, Any]) -> Iterator[str]:
    """Yield a cycle with its nodes and their number by state."""
    end = cycle["end_time"]
    took = f", took {(end - cycle['start_time']) / 1000:g} s" if end is not None else ""
    yield f"cycle {cycle['cycle']} at {_instant(cycle['at'])}: {cycle['status']}, run by {cycle['owner']}{took}"
    width = max(map(len, cycle["nodes"]), default=0)
    for node, task in cycle["nodes"].items():
        yield f"  {node:{width}}  {task['status']:10}  {task['attempts']}  {_detail(task)}".rstrip()
    counts = [f"{count} {status}" for status, count in cycle["statistics"].items() if status != "total" and count]
    yield f"  {cycle['statistics']['total']} nodes: {', '.join(counts)}"


def progress_lines(cycle: Mapping[str, Any]) -> list[str]:
    """Return the progress bar of a cycle, and one for each node that a worker runs."""
    counts, total = cycle["statistics"], cycle["statistics"]["total"]
    done = sum(counts[status] for status in _ENDED)
    running = {node: task for node, task in cycle["nodes"].items() if task["status"] == "running"}
    lines = [f"cycle {cycle['cycle']} [{_bar(done, total)}] {done}/{total} {', '.join(running) or cycle['status']}"]
    for node, task in running.items():
        if task["worker"] is not None:
            lines.append(f"  {node} [{_bar(task['progress'], 100)}] {_worker(task)}")
    return lines


def _worker(task: Mapping[str, Any]) -> str:
    message = f" {task['message']}" if task["message"] else ""
    return f"{task['progress']} %{message} (worker {task['worker']})"


def _bar(done: int, total: int) -> str:
    filled = _BAR * done // total
    return "#" * filled + "-" * (_BAR - filled)


def _detail(task: Mapping[str, Any]) -> str:
    if task["reason"]:
        return str(task["reason"])
    if task["status"] == "running" and task["worker"] is not None:
        return _worker(task)
    text = msgspec.json.encode(task["output"]).decode()
    return text if len(text) <= _LONGEST_DETAIL else f"{text[:_LONGEST_DETAIL]}…"


def _schedule(config: Mapping[str, Any]) -> str:
    zone = config.get("time_zone", "UTC")
    match config:
        case {"interval_seconds": 0}:
            return "once"
        case {"interval_seconds": seconds}:
            return f"every {seconds:g} s"
        case {"cron": text}:
            return f"cron {text}, {zone}"
        case _:
            return f"shifts {', '.join(config.get('shifts', ()))}, {zone}"


def _instant(at: int | None) -> str:
    return "none" if at is None else f"{utc(at):%Y-%m-%d %H:%M:%S} UTC"
