"""Fifty open pages slow no step of a job: budgets of the station page."""

import contextlib
import itertools
import statistics
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.outside.conftest import Plant
from tests.outside.plant import TIGHTEN_ACTION
from tests.outside.test_station_page import Page
from tests.outside.test_station_page import page as page  # noqa: PLC0414 - a fixture

pytestmark = pytest.mark.long

PAGES = 50
MOST = 1.2
ROUNDS = 3
JOBS = 20
STEPS = [f"S{number}" for number in range(120)]
RECIPE = {
    "steps": [{"name": step, "initial": step == STEPS[0]} for step in STEPS],
    "transitions": [
        {"source": source, "target": target, "condition": "always"} for source, target in itertools.pairwise(STEPS)
    ],
    "actions": [{**TIGHTEN_ACTION, "name": f"tighten_{step}", "step": step} for step in STEPS[:-1]],
}


@contextlib.contextmanager
def open_pages(page: Page) -> Iterator[None]:
    """Keep pages open for the length of the block, in a process of low priority: the gateway has the processor."""
    command = ["nice", sys.executable, "-m", "tests.outside.open_pages", str(page.port), str(PAGES), "alice", "eve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "open\n"
            yield
            assert process.poll() is None, "a page was refused"
        finally:
            process.kill()


def step_s(plant: Plant, name: str) -> float:
    """Run jobs one after the other for some seconds; return the median of a step, from one command to the next."""
    steps = []
    for number in range(JOBS):
        plant.wrench.commands.clear()
        assert plant.mes.start_job(f"{name}-{number}").status == 1
        plant.mes.wait_for_state(f"{name}-{number}", "Ended", 120)
        instants = [command.at for command in plant.wrench.commands if command.attributes.get("phase") == "start"]
        assert len(instants) == len(STEPS) - 1
        steps += [after - before for before, after in itertools.pairwise(instants)]
    return statistics.median(steps)


def test_steps_are_not_slower_with_fifty_open_pages(plant: Plant, page: Page) -> None:
    plant.mes.configure(recipe=RECIPE)
    step_s(plant, "WARM")
    alone, watched = [], []
    for number in range(ROUNDS):
        alone.append(step_s(plant, f"A{number}"))
        with open_pages(page):
            watched.append(step_s(plant, f"W{number}"))
    # Other programs of the machine slow some rounds, never all: the fastest ones are compared.
    assert min(watched) <= MOST * min(alone), (alone, watched)
