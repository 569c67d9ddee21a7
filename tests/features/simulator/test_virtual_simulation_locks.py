"""Random recipes with locks in virtual time are checked by an oracle of recipe and trace only."""

import itertools
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edge.features.simulator.script import parse_script
from edge.features.simulator.trace import Trace
from edge.features.simulator.virtual_simulation import simulate
from edge.sfc.compiler import RejectedRecipe, compile_recipe
from tests.sfc.recipes import Json, action, branch, recipe, transition

LOCKS = st.lists(st.sampled_from("abc"), max_size=2, unique=True)
MANY = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def recipes(draw: st.DrawFn) -> Json:
    """Draw a line of steps with locks; in its midst there may be two parallel paths, with a lock of their own."""
    names = [f"S{number}" for number in range(draw(st.integers(2, 6)))]
    line = list(names)
    branches = []
    if draw(st.booleans()):
        at = draw(st.integers(1, len(names) - 1))
        line.insert(at, "both")
        branches = [branch("both", "simultaneous", "P1 P2", "Q1 Q2")]
        names += ["P1", "P2", "Q1", "Q2"]
        if at == len(line) - 1:
            line.append("End")
            names.append("End")
    actions = [action(f"do{name}", name) for name in names if draw(st.booleans())]
    data = recipe(" ".join(names), [transition(a, b) for a, b in itertools.pairwise(line)], actions, *branches)
    for step in (*data["steps"], *data["branches"]):
        step["lock"] = draw(LOCKS)
    return data


def needs(data: Json) -> dict[str, set[str]]:
    """Return the locks of each step, as the reference says: its own and those of its branch."""
    found = {value["name"]: set(value["lock"]) for value in data["steps"]}
    for item in data["branches"]:
        for name in itertools.chain(*item["branches"]):
            found[name] |= set(item["lock"])
    return found


def clashes(wanted: dict[str, dict[str, set[str]]], steps: list[dict[str, Any]]) -> list[str]:
    """Return where two jobs are in steps of one lock: all changes of one instant are seen in their order."""
    active: dict[str, set[str]] = {}
    found = []
    for change in steps:
        job, mine = change["job"], active.setdefault(change["job"], set())
        (mine.add if change["active"] else mine.discard)(change["step"])
        held = {name: {lock for step in steps for lock in wanted[name][step]} for name, steps in active.items()}
        others = set().union(*(locks for name, locks in held.items() if name != job))
        if change["active"] and others & wanted[job][change["step"]]:
            found.append(f"{change} while {held}")
    return found


def is_sound(data: Json) -> bool:
    return not isinstance(compile_recipe(data), RejectedRecipe)


@MANY
@given(first=recipes().filter(is_sound), second=recipes().filter(is_sound), count=st.integers(2, 6))
def test_jobs_with_locks_end_and_never_share_a_lock(first: Json, second: Json, count: int) -> None:
    """Half of the jobs follow one recipe, half another: a circle of locks would keep some of them from ending."""
    jobs = [{"id": f"J{number}", "at": 0.01 * number} for number in range(count)]
    change = {"at": 0.01 * (count // 2) - 0.005, "system": "replace_recipe", "recipe": second}
    trace = simulate(first, parse_script({"jobs": jobs, "timeline": [change]}))
    wanted = {f"J{number}": needs(first if number < count // 2 else second) for number in range(count)}
    assert trace.final_by_job == dict.fromkeys(wanted, "completed")
    assert not clashes(wanted, with_ends(trace, set(wanted)))


def with_ends(trace: Trace, jobs: set[str]) -> list[dict[str, Any]]:
    """Return the changes of steps with the end of each job, where its last steps are left too.

    A job ends 0.1 s after its last command, when the simulated equipment has answered it.
    """
    steps = list(trace.steps)
    for job in jobs:
        last = max(number for number, entry in enumerate(steps) if entry["job"] == job)
        answered = [command["t"] + 0.1 for command in trace.commands if command["job"] == job]
        end = max([steps[last]["t"], *answered])
        place = next((n for n, entry in enumerate(steps) if n > last and entry["t"] >= end - 1e-6), len(steps))
        active: set[str] = set()
        for fields in steps:
            if fields["job"] == job:
                (active.add if fields["active"] else active.discard)(fields["step"])
        steps[place:place] = [{"t": end, "job": job, "step": step, "active": False} for step in active]
    return steps
