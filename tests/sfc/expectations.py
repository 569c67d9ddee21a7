"""Compares the trace of a simulation with what a case expects of it."""

from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any


def unmet(trace: dict[str, Any], expect: dict[str, Any]) -> Iterator[str]:
    """Yield what a trace does not show of what is expected."""
    yield from _commands(trace["commands"], expect.get("commands"), expect.get("commands_order"))
    activations = [step for step in trace["steps"] if step["active"]]
    counts = Counter(step["step"] for step in activations)
    for chain in expect.get("step_trace", ()):
        if not any(_is_subsequence(chain, names) for names in _by_job(activations)) and chain:
            yield f"steps {chain} do not become active in this order"
    for step, times in expect.get("activations", {}).items():
        if counts[step] != times:
            yield f"{step} is active {counts[step]} times, not {times}"
    for step in expect.get("never_active", ()):
        if counts[step]:
            yield f"{step} must never be active"
    for step, time in expect.get("not_before", {}).items():
        if any(activation["step"] == step and activation["t"] < time - 1e-9 for activation in activations):
            yield f"{step} is active before {time}"
    yield from _end(trace, expect)


def _by_job(activations: list[dict[str, Any]]) -> Iterator[list[str]]:
    for job in {step["job"] for step in activations}:
        yield [step["step"] for step in activations if step["job"] == job]


def _is_subsequence(chain: list[str], names: list[str]) -> bool:
    rest = iter(names)
    return all(name in rest for name in chain)


def _end(trace: dict[str, Any], expect: dict[str, Any]) -> Iterator[str]:
    if "final" in expect and trace["final"] != expect["final"]:
        yield f"final is {trace['final']}, not {expect['final']}"
    for job, final in expect.get("final_by_job", {}).items():
        if trace["final_by_job"].get(job) != final:
            yield f"{job} is {trace['final_by_job'].get(job)}, not {final}"
    if expect.get("error_contains", "") not in (trace["error"] or ""):
        yield f"the error does not say {expect['error_contains']!r}"
    for part in expect.get("warnings_contain", ()):
        if not any(part in warning for warning in trace["warnings"]):
            yield f"no warning says {part!r}"
    end = trace["end"]
    if "end_min" in expect and (end is None or end < expect["end_min"] - 1e-9):
        yield f"the end {end} is before {expect['end_min']}"
    if "end_max" in expect and (end is None or end > expect["end_max"] + 1e-9):
        yield f"the end {end} is after {expect['end_max']}"


def _commands(seen: list[dict[str, Any]], wanted: list[dict[str, Any]] | None, order: object) -> Iterator[str]:
    if wanted is None:
        return
    if order is None:
        if not _in_order(seen, wanted):
            yield f"commands are not, in this order, {wanted}"
        return
    rest = list(seen)
    for want in sorted(wanted, key=lambda want: bool(want.get("optional"))):
        found = next((command for command in rest if _fits(command, want)), None)
        if found is not None:
            rest.remove(found)
        elif not want.get("optional"):
            yield f"no command {want}"
    if rest:
        yield f"unexpected commands {rest}"
    if isinstance(order, list):
        for first, second in order:
            at = {name: [n for n, entry in enumerate(seen) if entry["action"] == name] for name in (first, second)}
            if any(a > b for a, b in product(at[first][:1], at[second][:1])):
                yield f"command {first} does not come before {second}"


def _in_order(seen: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> bool:
    if not wanted:
        return not seen
    first, rest = wanted[0], wanted[1:]
    if seen and _fits(seen[0], first) and _in_order(seen[1:], rest):
        return True
    return bool(first.get("optional")) and _in_order(seen, rest)


def _fits(command: dict[str, Any], want: dict[str, Any]) -> bool:
    keys = ("action", "type_id", "phase", "job", "attempt")
    return (
        all(key not in want or command[key] == want[key] for key in keys)
        and command["t"] >= want.get("t_min", 0) - 1e-9
        and command["t"] <= want.get("t_max", float("inf")) + 1e-9
    )
