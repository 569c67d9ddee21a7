"""A start that must not be repeated was marked and not sent: its gateway sends it, unless it was killed.

The replica does not get the mark in time, so that the start waits for it.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.outside.servers import build_clock_shim, wait_for
from tests.sentinel.line import DataNode
from tests.sentinel.plant import KEY_PREFIX, ONCE_ACTIONS, Plant, open_plant

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
_ENDS_S = 60


@contextlib.contextmanager
def held_start(tmp_path: Path) -> Iterator[tuple[Plant, str]]:
    """Run a line whose only gateway has marked a start of a job that the replica has not confirmed."""
    with open_plant(tmp_path, build_clock_shim(tmp_path), nodes=2) as plant:
        wait_for(plant.line.settled, "the line works", 60)
        plant.gateways[1].lose()
        primary, replica = plant.line.nodes
        # The sentinels still reach it: it may be promoted, and has to confirm.
        plant.network.cut([primary.name], [replica.name], both=False)
        job = plant.order()
        wait_for(lambda: is_marked(primary, job), "the begun mark is committed", 30)
        yield plant, job


def is_marked(node: DataNode, job: str) -> bool:
    generation = node.call("HGET", f"{KEY_PREFIX}:generation", "id")
    return f"{generation}/" in str(node.call("HGETALL", f"{KEY_PREFIX}:sfc:execution:{job}"))


def once_works(plant: Plant, job: str) -> list[int]:
    (press,) = [tool for tool in plant.tools if not tool.remembers]
    works = press.works()
    return [works[job, action] for action in ONCE_ACTIONS]


def test_marked_start_that_was_not_sent_is_sent_after_a_failover(tmp_path: Path) -> None:
    """The gateway knew that it had sent nothing, and called the outcome unknown."""
    with held_start(tmp_path) as (plant, job):
        assert once_works(plant, job) == [0, 0]
        primary, replica = plant.line.nodes
        primary.kill()
        plant.network.heal()
        wait_for(lambda: is_marked(replica, job), "the next primary has the mark")
        wait_for(lambda: plant.mes.has_ended(job), "the job has ended", _ENDS_S)
        assert once_works(plant, job) == [1, 1]
        assert "outcome unknown" not in {record["event"] for record in plant.gateways[0].records()}


def test_start_that_a_killed_gateway_had_marked_becomes_unknown(tmp_path: Path) -> None:
    """No answer came, and the job never ended: no other gateway knows whether the start had left."""
    with held_start(tmp_path) as (plant, job):
        plant.gateways[0].kill()
        plant.network.heal()
        wait_for(lambda: plant.mes.resolve(job, "press", "repeat"), "a person can decide", _ENDS_S)
        wait_for(lambda: plant.mes.has_ended(job), "the job has ended", _ENDS_S)
        assert once_works(plant, job) == [1, 1]
