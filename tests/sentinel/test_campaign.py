"""A line of two gateways survives the faults of its store behind Sentinel; the tools' own logs are the truth."""

from pathlib import Path

import pytest

from tests.outside.servers import build_clock_shim
from tests.sentinel.campaign import Campaign
from tests.sentinel.faults import BY_NAME
from tests.sentinel.plant import open_plant


@pytest.mark.timeout(150)
def test_killed_primary_loses_no_job_and_repeats_no_work(tmp_path: Path) -> None:
    with open_plant(tmp_path, build_clock_shim(tmp_path), nodes=2) as plant:
        campaign = Campaign(plant)
        campaign.run([BY_NAME["primary killed"]])
    (outcome,) = campaign.rounds
    assert outcome.faults() == {}
    assert outcome.accepted > 4
