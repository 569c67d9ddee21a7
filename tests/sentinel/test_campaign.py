"""A line of two gateways survives the faults of its store behind Sentinel; the tools' own logs are the truth."""

import random
from pathlib import Path

import pytest

from tests.outside.servers import build_clock_shim
from tests.sentinel.campaign import Campaign, Round
from tests.sentinel.faults import BY_NAME, Fault, Scene, sequence
from tests.sentinel.plant import open_plant
from tests.sentinel.report import line_of


@pytest.mark.timeout(150)
def test_killed_primary_loses_no_job_and_repeats_no_work(tmp_path: Path) -> None:
    with open_plant(tmp_path, build_clock_shim(tmp_path), nodes=2) as plant:
        campaign = Campaign(plant)
        campaign.run([BY_NAME["primary killed"]])
    (outcome,) = campaign.rounds
    assert outcome.faults() == {}
    assert outcome.accepted > 4


def test_end_under_a_second_id_is_a_fault_of_a_replicated_line() -> None:
    """It was counted and never judged: nothing of a job may be lost there, so nothing takes its place."""
    outcome = Round(BY_NAME["primary killed"], repeated_ends=["J1"])
    assert outcome.faults(replicated=True) == {"ended again under another id": ["J1"]}
    assert outcome.faults() == {}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "faults",
    [
        # Each side has a gateway; only one of them may continue.
        pytest.param(("split, publisher with primary", "failover by command"), id="divided network"),
        # Each lane waited 20 s for the end of a job that the store had lost: the next fault met an idle line.
        pytest.param(("primary restarted empty", "switch-over"), id="lost jobs"),
    ],
)
def test_two_faults_in_turn_repeat_no_work_and_stop_no_order(tmp_path: Path, faults: tuple[str, str]) -> None:
    with open_plant(tmp_path, build_clock_shim(tmp_path), nodes=3) as plant:
        campaign = Campaign(plant)
        campaign.run([BY_NAME[name] for name in faults])
    assert [line_of(item) for item in campaign.rounds if item.faults()] == []


def _repeat_first_calls(scene: Scene) -> None:
    for job_id in list(scene.plant.mes.orders)[:3]:
        scene.plant.mes.repeat(job_id)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_work_repeated_by_an_empty_store_counts_to_its_round(tmp_path: Path) -> None:
    """The round after it was blamed: a MES repeated a call once more, and no mark was left of what had been done."""
    repeated = Fault("calls repeated", _repeat_first_calls, 5.0, fails_over=False)
    with open_plant(tmp_path, build_clock_shim(tmp_path), nodes=2) as plant:
        campaign = Campaign(plant)
        campaign.run([BY_NAME["primary restarted empty"], repeated])
    emptied, after = campaign.rounds
    # The process that has pressed for J0 does not press again; another one cannot know that.
    assert "J0 press (press, 2 times)" not in after.twice
    assert after.faults() == emptied.faults() == {}


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("program", "nodes", "durability", "faults"),
    [("redis", 3, "required", 34), ("valkey", 2, "required", 33), ("redis", 3, "replicated", 33)],
)
def test_hundred_faults_lose_and_repeat_no_more_than_stated(
    tmp_path: Path, program: str, nodes: int, durability: str, faults: int
) -> None:
    redis = f'durability = "{durability}"\n'
    with open_plant(tmp_path, build_clock_shim(tmp_path), nodes=nodes, program=program, redis=redis) as plant:
        campaign = Campaign(plant)
        campaign.run(sequence(faults, nodes, random.Random(faults)))
    replicated = durability == "replicated"
    assert [line_of(item) for item in campaign.rounds if item.faults(replicated=replicated)] == []
