"""Random well-formed recipes that come to an end when equipment answers, and random days for them."""

import itertools
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from edge.model.recipe import Qualifier
from edge.sfc.net import QUALIFIER_RULES

Json = dict[str, Any]
Block = str
LIVE = "actions.{action}.failed or actions.{action}.timed_out"


@dataclass
class Chart:
    """A recipe while it is drawn."""

    draw: st.DrawFn
    steps: list[Json] = field(default_factory=list)
    branches: list[Json] = field(default_factory=list)
    transitions: list[Json] = field(default_factory=list)
    actions: list[Json] = field(default_factory=list)

    def step(self) -> Block:
        name = f"S{len(self.steps)}"
        self.steps.append({"name": name, "initial": not self.steps})
        for _ in range(self.draw(st.integers(0, 2))):
            self.action(name)
        return name

    def action(self, step: str) -> None:
        stored = [a["name"] for a in self.actions if QUALIFIER_RULES[Qualifier(a["qualifier"])].stored]
        kinds = [*Qualifier] if stored else [q for q in Qualifier if q is not Qualifier.R]
        qualifier = self.draw(st.sampled_from(kinds))
        name = f"a{len(self.actions)}"
        if qualifier is Qualifier.R or (qualifier is Qualifier.S and stored and self.draw(st.integers(0, 1)) > 0):
            name = self.draw(st.sampled_from(stored))
        pull = qualifier not in {Qualifier.P0, Qualifier.R} and self.draw(st.integers(0, 3)) == 0
        self.actions.append(
            {
                "name": name,
                "step": step,
                "qualifier": qualifier.value,
                "interaction": "pull_event" if pull else "push_command",
                "type_id": f"event{len(self.actions) % 3}" if pull else f"type{len(self.actions)}",
                "timeout_seconds": self.draw(st.sampled_from([0, 4, 30])),
                "duration_seconds": self.draw(st.sampled_from([1, 3])) if QUALIFIER_RULES[qualifier].timed else 0,
            }
        )

    def branch(self, depth: int) -> Block:
        kind = self.draw(st.sampled_from(["selection", "simultaneous"]))
        number = len(self.branches)
        entry: Json = {"name": f"B{number}", "type": kind, "branches": []}
        self.branches.append(entry)
        paths = [self.path(depth - 1) for _ in range(self.draw(st.integers(1, 3)))]
        entry["branches"] = paths
        if kind == "selection":
            for order, path in enumerate(paths[:-1]):
                condition = self.draw(st.sampled_from(["always", "never", "unknown_name", "wish"]))
                self.join(entry["name"], path[0], condition, order)
            self.join(entry["name"], paths[-1][0], "always", len(paths))
        return str(entry["name"])

    def path(self, depth: int) -> list[Block]:
        blocks = [self.block(depth) for _ in range(self.draw(st.integers(1, 3)))]
        self.loops(blocks)
        return blocks

    def block(self, depth: int) -> Block:
        return self.branch(depth) if depth > 0 and self.draw(st.integers(0, 2)) == 0 else self.step()

    def loops(self, blocks: list[Block]) -> None:
        """Now and then jump back from a step to an earlier block, three times at most."""
        for at, block in enumerate(blocks):
            if block.startswith("S") and at and self.draw(st.integers(0, 3)) == 0:
                back = self.draw(st.sampled_from(blocks[: at + 1]))
                self.join(block, back, f"steps.{block}.count < 3", -2)

    def join(self, source: str, target: str, condition: str, priority: int = 0) -> None:
        self.transitions.append({"source": source, "target": target, "condition": condition, "priority": priority})

    def exit(self, source: Block, target: Block) -> None:
        """Join two blocks outside all paths, with a way that stays open."""
        own = [a["name"] for a in self.actions if a["step"] == source]
        if own and self.draw(st.integers(0, 1)) > 0:
            self.join(source, target, LIVE.format(action=own[0]), -1)
        if source.startswith("S") and self.draw(st.integers(0, 2)) == 0:
            self.join(source, target, f"steps.{source}.T >= {self.draw(st.sampled_from([1, 2]))}s", -1)
        self.join(source, target, self.draw(st.sampled_from(["always", "1 < 2", "not wish or wish"])), 5)
        self.join(source, target, "always", 6)


@st.composite
def recipes(draw: st.DrawFn) -> Json:
    """Draw a recipe: a sequence of steps and nested branches with all qualifiers, loops and live conditions."""
    chart = Chart(draw)
    blocks = [chart.step(), *(chart.block(2) for _ in range(draw(st.integers(1, 3)))), chart.step()]
    for source, target in itertools.pairwise(blocks):
        chart.exit(source, target)
    chart.loops(blocks[:-1])
    _one_timed_each(chart.actions)
    return {
        "steps": chart.steps,
        "branches": chart.branches,
        "transitions": chart.transitions,
        "actions": chart.actions,
        "interventions": draw(st.sampled_from([[], ["retry", "skip", "force", "complete"]])),
    }


def _one_timed_each(actions: list[Json]) -> None:
    """An action may have one timed qualifier; names are shared between S and R only, so none has two."""
    timed = [a["name"] for a in actions if QUALIFIER_RULES[Qualifier(a["qualifier"])].timed]
    assert len(timed) == len(set(timed))


DAY = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "answer",
                "answer",
                "answer",
                "fail",
                "again",
                "foreign",
                "event",
                "named",
                "tick",
                "tick",
                "pause",
                "resume",
                "retry",
                "skip",
                "force",
                "complete",
                "second",
            ]
        ),
        st.integers(0, 7),
        st.sampled_from([0, 1, 100, 999, 1000, 3000, 5000]),
    ),
    min_size=5,
    max_size=40,
)
"""What happens, to which of those it may happen to, and how many milliseconds later."""
