"""Kills a gateway again and again under running flows, and finds cycles that are stuck and actions done twice."""

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.outside.flow_plant import FlowPlant, chain, node, open_flow_plant
from tests.outside.servers import wait_for

FLOWS = 20
PREFIX = "microdcs-edge:"


@dataclass
class FlowFigures:
    """What a campaign saw: the state of each cycle and of its action, and how often the action was performed."""

    kills: int = 0
    seconds: float = 0.0
    cycles: dict[str, str] = field(default_factory=dict)
    actions: dict[str, dict[str, Any]] = field(default_factory=dict)
    performed: Counter[str] = field(default_factory=Counter)

    def faults(self) -> Iterator[str]:
        """Yield what must not be."""
        for task, count in self.performed.items():
            if count > 1:
                yield f"{task} was performed {count} times"
        for cycle, status in self.cycles.items():
            if status == "running":
                yield f"{cycle} is stuck"
        for task, action in self.actions.items():
            match action.get("status"):
                case "completed" if self.performed[task] != 1:
                    yield f"{task} is completed and was performed {self.performed[task]} times"
                case "failed" if action["reason"] != "interrupted":
                    yield f"{task} failed: {action['reason']}"
                case "running" | "pending" | None:
                    yield f"{task} is {action.get('status')}"
                case _:
                    pass


def carry_out(
    kills: int, directory: Path, seed: int, report: Callable[[str], None] = lambda _: None, *, with_store: bool = False
) -> FlowFigures:
    """Run twenty flows that each compute, wait, post and wait; kill their gateway so often, then let them end.

    With `with_store` every other kill hits Redis, which starts again with what it had written.
    """
    chance, figures, began = random.Random(seed), FlowFigures(), time.monotonic()
    with open_flow_plant(directory) as plant:
        plant.counter.slow_s = 0.1
        _sync_each_commit(plant)
        gateway = plant.start("edge")
        for number in range(FLOWS):
            plant.put(_flow(f"f{number}", plant.counter.url))
        while figures.kills < kills:
            time.sleep(chance.uniform(1, 2))
            figures.kills += 1
            if with_store and figures.kills % 2 == 0:
                plant.store.kill()
                plant.store.start()
                _sync_each_commit(plant)
            else:
                gateway.kill()
                gateway.start()
            if figures.kills % 10 == 0:
                report(f"{figures.kills} kills, {len(plant.counter.posted)} actions")
        for number in range(FLOWS):
            plant.edge("stop", f"f{number}")
        wait_for(lambda: not plant.store.cli("smembers", f"{PREFIX}flows:running"), "no cycle runs", 120)
        _collect(plant, figures)
    figures.seconds = time.monotonic() - began
    return figures


def _sync_each_commit(plant: FlowPlant) -> None:
    """Set a store that loses nothing it has confirmed: one that syncs each second may when it is killed."""
    plant.store.cli("CONFIG", "SET", "appendfsync", "always")


def _flow(name: str, url: str) -> dict[str, Any]:
    return chain(
        name,
        node("values", "constant", value=[2, 4, 6]),
        node("before", "delay", seconds=0.05),
        node("mean", "aggregate", of="mean"),
        node("post", "http.post", url=url),
        node("after", "delay", seconds=0.02),
        interval_seconds=0.3,
    )


def _collect(plant: FlowPlant, figures: FlowFigures) -> None:
    figures.performed = Counter(plant.counter.posted)
    for key in plant.store.cli("--scan", "--pattern", f"{PREFIX}flow:*:cycle:*").split():
        name = key.removeprefix(PREFIX)
        figures.cycles[name] = plant.store.cli("hget", key, "status")
        _, flow, _, number = name.split(":")
        task = f"{flow}_{number}_post"
        figures.actions[task] = json.loads(plant.store.cli("get", f"{PREFIX}node_tasks:{task}") or "{}")
