"""A trial runs cycles in virtual time and agrees with a naive evaluator on random flows."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.features.flows.cycle import Cycle
from edge.features.flows.node_task import LARGEST_INLINE
from edge.features.flows.plan import Plan
from edge.features.flows.ports.tags import SampleHistory
from edge.features.flows.trial import TrialInput, public_trial, run_trial
from edge.foundation.text import ENGLISH
from edge.ports.sample_lines import Sample
from tests.features.flows.documents import flow, node, plan_of

Shown = dict[str, Any]


def trial(
    plan: Plan, cycles: int = 1, start: int = 0, samples: list[Sample] | None = None, **given: Any
) -> list[Shown]:
    trial_input = TrialInput(SampleHistory.of(samples or []), **given)
    return [_shown(cycle) for cycle in run_trial(plan, trial_input, cycles, start)]


def _shown(cycle: Cycle) -> Shown:
    members = ("status", "output", "reason", "attempts", "started_at", "ended_at")
    nodes = {
        name: {member: getattr(task, member) for member in members} | {"reason": task.reason_in(ENGLISH) or None}
        for name, task in cycle.tasks.items()
    }
    return {"cycle": cycle.number, "at": cycle.at, "status": cycle.status.value, "nodes": nodes}


def ended(shown: Shown, name: str, *members: str) -> list[Any]:
    return [shown["nodes"][name][member] for member in members]


def test_press_report_averages_the_last_minute() -> None:
    nodes = [
        node("pressure", "tag.window", tag="press.pressure", seconds=60),
        node("mean", "aggregate", of="mean"),
        node("publish", "mqtt.publish", topic="plant/press/mean"),
    ]
    plan = plan_of(flow(nodes, "pressure>mean mean>publish"))
    samples = [Sample(at, "press.pressure", value) for at, value in ((0, 1.0), (60_000, 3), (90_000, 5))]
    first, second = trial(plan, 2, 1, samples)
    assert (first["at"], second["at"]) == (60_000, 120_000)
    assert ended(first, "mean", "output") == [3]
    assert ended(second, "publish", "status", "output") == [
        "completed",
        {"would": "mqtt.publish", "topic": "plant/press/mean", "retain": False, "value": 5},
    ]


def test_interval_of_zero_runs_one_cycle() -> None:
    assert [
        cycle["at"] for cycle in trial(plan_of(flow([node("a", "constant", value=1)], interval_seconds=0)), 5, 77)
    ] == [77]


def test_cycle_waits_for_the_end_of_the_previous_cycle() -> None:
    plan = plan_of(flow([node("a", "constant", value=1), node("d", "delay", seconds=90)], "a>d"))
    assert [(cycle["cycle"], cycle["at"]) for cycle in trial(plan, 3)] == [(0, 0), (1, 120_000), (2, 240_000)]


def test_timeout_limits_each_attempt() -> None:
    slow = {**node("d", "delay", seconds=5), "timeout_seconds": 2, "retries": 1}
    (shown,) = trial(plan_of(flow([node("a", "constant", value=1), slow], "a>d")))
    assert shown["status"] == "failed"
    assert ended(shown, "d", "status", "reason", "attempts", "started_at", "ended_at", "output") == [
        "failed",
        "timeout",
        2,
        0,
        4000,
        None,
    ]


def test_attempts_of_a_fail_node_restart_in_each_cycle() -> None:
    plan = plan_of(flow([{**node("f", "fail", message="broken", times=1), "retries": 1}]))
    assert [ended(cycle, "f", "status", "attempts") for cycle in trial(plan, 2)] == [["completed", 2]] * 2


def test_terminated_node_ends_when_it_starts() -> None:
    plan = plan_of(flow([node("a", "constant", value=1), node("d", "delay", seconds=5)], "a>d"))
    first, second = trial(plan, 2, terminated={1: frozenset({"d"})})
    assert (first["status"], second["status"]) == ("completed", "terminated")
    assert ended(second, "d", "reason", "attempts", "started_at", "ended_at", "output") == [
        "terminated",
        1,
        60_000,
        60_000,
        None,
    ]


def test_stopped_component_is_skipped_in_its_cycle_only() -> None:
    plan = plan_of(flow([node("a", "constant", value=1), node("b", "constant", value=2)]))
    first, second = trial(plan, 2, stopped={0: frozenset({1})})
    assert ended(first, "b", "status", "reason", "output", "attempts", "started_at", "ended_at") == [
        "skipped",
        "component_stopped",
        None,
        0,
        None,
        None,
    ]
    assert ended(second, "b", "status") == ["completed"]


def test_changed_node_compares_with_its_last_received_value() -> None:
    plan = plan_of(
        flow([node("t", "tag.latest", tag="t"), node("c", "changed"), node("m", "delay", seconds=0)], "t>c c>m")
    )
    samples = [Sample(60_000 * at, "t", value) for at, value in ((0, 5), (2, 6), (3, 5))]
    shown = trial(plan, 4, 0, samples)
    assert [ended(cycle, "m", "status", "reason")[1] for cycle in shown] == [None, "unchanged", None, None]


def test_query_other_than_tags_fails_in_a_trial() -> None:
    (shown,) = trial(plan_of(flow([node("h", "http.get", url="http://line/")])))
    assert ended(shown, "h", "status", "reason") == [
        "failed",
        "a trial reads tags only; put a constant node in place of this one",
    ]


def test_large_output_is_shown_by_reference_and_passed_on_completely() -> None:
    text = "x" * LARGEST_INLINE
    plan = plan_of(flow([node("a", "constant", value=text), node("e", "expression", expr=f'a == "{"x" * 9}"')], "a>e"))
    (cycle,) = run_trial(plan, TrialInput(SampleHistory({})), 1, 0)
    assert [node.output for node in public_trial(cycle).nodes] == [
        {"ref": "flow_0_a", "bytes": LARGEST_INLINE + 2},
        False,
    ]


# ------------------------------------------------------------------------------------------- a naive second evaluator

ORDER = ["component_stopped", "dependency_failed", "switch", "unchanged", "dependency_skipped"]


class NaiveCycle:
    """One cycle, evaluated node by node from its predecessors, straight from the sentences of the page."""

    def __init__(self, document: Shown, at: int, stopped: set[str], terminated: set[str]) -> None:
        self.nodes = {value["id"]: value for value in document["nodes"]}
        self.sources = {name: [a for a, b in document["edges"] if b == name] for name in self.nodes}
        self.at, self.stopped, self.terminated = at, stopped, terminated
        self.found: dict[str, Shown] = {}

    def result(self, name: str) -> Shown:
        if name not in self.found:
            self.found[name] = self.evaluate(name)
        return self.found[name]

    def evaluate(self, name: str) -> Shown:
        sources = {source: self.result(source) for source in self.sources[name]}
        causes = [self.cause(result) for result in sources.values()]
        found = [cause for cause in causes if cause]
        merge = self.nodes[name]["kind"] == "merge"
        if name in self.stopped:
            return self.skipped("component_stopped")
        if found and not (merge and len(found) < len(causes)):
            return self.skipped(min(found, key=ORDER.index))
        started = max([self.at, *(result["ended_at"] for result in sources.values() if result["ended_at"] is not None)])
        if name in self.terminated:
            return self.task("terminated", None, "terminated", 1, started, started)
        inputs = {source: result["output"] for source, result in sources.items() if not self.cause(result)}
        return self.run(self.nodes[name], inputs, started)

    def run(self, entry: Shown, inputs: Shown, started: int) -> Shown:
        value = next(iter(inputs.values())) if len(inputs) == 1 else None
        config, attempts = entry["config"], entry.get("retries", 0) + 1
        limit = entry.get("timeout_seconds")
        match entry["kind"]:
            case "constant":
                return self.task("completed", config["value"], None, 1, started, started)
            case "merge":
                return self.task("completed", inputs, None, 1, started, started)
            case "switch":
                passes = config["when"] == "true"
                shown = self.task("completed", value if passes else None, None, 1, started, started)
                return shown if passes else {**shown, "withheld": "switch"}
            case "fail":
                if config["times"] >= attempts:
                    return self.task("failed", None, config["message"], attempts, started, started)
                return self.task("completed", value, None, config["times"] + 1, started, started)
            case _:
                duration = config["seconds"] * 1000
                if limit is not None and duration > limit * 1000:
                    return self.task("failed", None, "timeout", attempts, started, started + attempts * limit * 1000)
                return self.task("completed", value, None, 1, started, started + duration)

    def cause(self, result: Shown) -> str | None:
        if result["status"] in {"failed", "terminated"}:
            return "dependency_failed"
        return "dependency_skipped" if result["status"] == "skipped" else result.get("withheld")

    def skipped(self, reason: str) -> Shown:
        return self.task("skipped", None, reason, 0, None, None)

    def task(self, status: str, output: Any, reason: str | None, attempts: int, start: Any, end: Any) -> Shown:
        return {
            "status": status,
            "output": output,
            "reason": reason,
            "attempts": attempts,
            "started_at": start,
            "ended_at": end,
        }

    def shown(self) -> Shown:
        tasks = {
            name: {key: value for key, value in self.result(name).items() if key != "withheld"} for name in self.nodes
        }
        statuses = [task["status"] for task in tasks.values()]
        status = "failed" if "failed" in statuses else "terminated" if "terminated" in statuses else "completed"
        return {"status": status, "nodes": tasks}


@st.composite
def flows(draw: st.DrawFn) -> Shown:
    nodes, edges = [], []
    for index in range(draw(st.integers(1, 8))):
        name = f"n{index}"
        sources = (
            draw(st.lists(st.sampled_from([f"n{number}" for number in range(index)]), unique=True)) if index else []
        )
        kinds = ["merge", "fail"] if len(sources) > 1 else ["merge", "fail", "constant" if not sources else "delay"]
        kind = draw(st.sampled_from([*kinds, *(["switch", "delay"] if len(sources) == 1 else [])]))
        configs: dict[str, Shown] = {
            "constant": {"value": draw(st.integers(-2, 2))},
            "merge": {},
            "fail": {"message": "broken", "times": draw(st.integers(0, 2))},
            "switch": {"when": draw(st.sampled_from(["true", "false"]))},
            "delay": {"seconds": draw(st.integers(0, 3))},
        }
        config = configs[kind]
        limits = {"retries": draw(st.integers(0, 2))} | ({"timeout_seconds": 2} if draw(st.booleans()) else {})
        nodes.append({"id": name, "kind": kind, "config": config, **limits})
        edges += [[source, name] for source in sources]
    return {"id": "flow", "interval_seconds": 60, "nodes": nodes, "edges": edges}


@given(flows(), st.data())
def test_trial_agrees_with_the_naive_evaluator(document: Shown, data: st.DataObject) -> None:
    plan = plan_of(document)
    stopped = data.draw(st.sets(st.integers(0, len(plan.components) - 1), max_size=2))
    terminated = data.draw(st.sets(st.sampled_from(list(plan.nodes)), max_size=2))
    (shown,) = trial(plan, 1, 0, stopped={0: frozenset(stopped)}, terminated={0: frozenset(terminated)})
    skipped = {name for index in stopped for name in plan.components[index]}
    expected = NaiveCycle(document, 0, skipped, terminated).shown()
    assert {"status": shown["status"], "nodes": shown["nodes"]} == expected


@pytest.mark.parametrize("cycles", [1, 50])
def test_cycle_numbers_have_no_gaps(cycles: int) -> None:
    shown = trial(plan_of(flow([node("a", "constant", value=1)], cron="0 6 * * *")), cycles)
    assert [cycle["cycle"] for cycle in shown] == list(range(cycles))
