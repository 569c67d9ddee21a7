"""Tests that a live simulation shows the same trace as a virtual simulation."""

import asyncio
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from edge.config import RedisSettings
from edge.features.simulator.live_simulation import simulate_live
from edge.features.simulator.script import Script, parse_script
from edge.features.simulator.virtual_simulation import simulate
from edge.foundation.errors import Unavailable
from edge.model.recipe import Recipe, parse_recipe

pytestmark = pytest.mark.slow

CASES = {
    file.stem: json.loads(file.read_text()) for file in sorted((Path(__file__).parents[2] / "sfc/cases").glob("*.json"))
}
GAP_S = 0.08
"""The real time between instants of a case: enough for the engine to process one before the next."""
LATE_S = 1.0
"""The maximum delay of a busy machine, in real time."""
BEGIN_EVERY_S = 0.1
"""The time between the starts of cases: the start needs the processor, the rest mostly waits."""
LONGEST_S = 12.0

Json = dict[str, Any]


def instants(recipe: Recipe, script: Script, trace: Json) -> Iterator[float]:
    """Yield the instants of all events in virtual time, also of events that an earlier one may cancel."""
    yield from (command["t"] for command in (*trace["commands"], *trace["steps"]))
    yield from (entry.at for entry in script.timeline)
    yield from (job.starts_at for job in script.jobs)
    received: dict[str, int] = {}
    for sent in trace["commands"]:
        nth = received[sent["type_id"]] = received.get(sent["type_id"], 0) + (sent["phase"] != "stop")
        how = script.answer_plan(sent["type_id"], sent["action"], sent["job"], nth)
        yield from (sent["t"] + delay / 1000 for delay in how.delays())
    spans = [
        (action.step, span) for action in recipe.actions for span in (action.duration_seconds, action.timeout_seconds)
    ]
    for change in trace["steps"]:
        yield from (change["t"] + span for step, span in spans if change["active"] and step == change["step"])


def speed_for(case: Json, script: Script, trace: Json) -> float:
    """Return a speed at which the instants of a case are GAP_S apart, unless the case then takes too long."""
    end = trace["end"] if trace["end"] is not None else min(script.horizon, 60)
    recipe, _ = parse_recipe(case["recipe"])
    known = {round(t, 3) for t in instants(recipe, script, trace) if t <= end} if recipe else {0.0}
    gaps = [after - before for before, after in pairwise(sorted(known)) if after - before > 0.01]
    return max(min(min(gaps, default=10.0) / GAP_S, 20.0), end / LONGEST_S)


def differences(script: Script, virtual: Json, live: Json, tolerance: float) -> Iterator[str]:
    """Yield the differences of a live trace from the virtual trace: in events, their number, order and times."""
    for key in ("final", "final_by_job", "error", "warnings"):
        if virtual[key] != live[key]:
            yield f"{key}: {virtual[key]} is {live[key]}"
    for key in ("interventions", "possible_interventions"):
        wanted, seen = ([item | {"t": 0} for item in trace[key]] for trace in (virtual, live))
        if wanted != seen:
            yield f"{key}: {wanted} is {seen}"
    for job in virtual["final_by_job"]:
        for kind in ("commands", "steps"):
            wanted = [value for value in virtual[kind] if value["job"] == job]
            seen = [value for value in live[kind] if value["job"] == job]
            yield from _differences(wanted, seen, tolerance, script.horizon)
    ends = virtual["end"], live["end"]
    if (ends[0] is None) is not (ends[1] is None) or abs((ends[0] or 0) - (ends[1] or 0)) > tolerance:
        yield f"end: {ends[0]} is {ends[1]}"


def _differences(wanted: list[Json], seen: list[Json], tolerance: float, horizon: float) -> Iterator[str]:
    rest = list(seen)
    for number, want in enumerate(wanted):
        if rest and rest[0] | {"t": 0} == want | {"t": 0}:
            # A pause that started late was short: later events come early.
            if abs(late := rest.pop(0)["t"] - want["t"]) > tolerance:
                yield f"{want} comes {late} s late"
        elif want["t"] < horizon - tolerance and not _withdrawn(want, wanted[number + 1 :]):
            yield f"{want} does not come: {rest[:1]}"
            return
    if rest:
        yield f"not in virtual time: {rest}"


def _withdrawn(want: Json, later: list[Json]) -> bool:
    """Return whether the same decision withdrew the start: the engine does not send such a start."""
    return want.get("phase") == "start" and any(
        entry["t"] == want["t"] and entry["action"] == want["action"] and entry["phase"] != "start" for entry in later
    )


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def differences_of(valkey: str) -> dict[str, list[str]]:
    """Return the differences of each case; all cases run concurrently, because each mostly waits."""

    async def run(name: str) -> tuple[str, list[str]]:
        case, script, virtual, speed = plans[name]
        found: list[str] = []
        # A busy machine separates the instants at a lower speed; a fault shows at every speed.
        for slower in (speed, speed / 2, speed / 4):
            store = RedisSettings(url=valkey, prefix=f"{name}-{slower}")
            try:
                live = await simulate_live(case["recipe"], script, slower, store)
            except Unavailable as error:
                found = [error.message]
                continue
            found = list(differences(script, virtual, live.as_json(), LATE_S * slower))
            if not found:
                break
        return name, found

    plans = {}
    for name, case in CASES.items():
        script = parse_script(case["script"])
        virtual = simulate(case["recipe"], script).as_json()
        plans[name] = case, script, virtual, speed_for(case, script, virtual)
    longest_first = sorted(plans, key=lambda name: (plans[name][2]["end"] or 0) / plans[name][3], reverse=True)
    running = []
    for name in longest_first:
        running.append(asyncio.ensure_future(run(name)))
        # Begun one after the other: a machine that is busy with those before begins the next one later.
        await asyncio.sleep(BEGIN_EVERY_S)
    return dict(await asyncio.gather(*running))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.timeout(600)
async def test_live_trace_equals_virtual_trace(differences_of: dict[str, list[str]], name: str) -> None:
    assert differences_of[name] == []
