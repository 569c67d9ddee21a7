"""The clock of the jobs runs on when the next primary's clock is a minute off: real processes, shifted by a shim."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.outside.servers import build_clock_shim, wait_for
from tests.sentinel.plant import open_plant

_WAIT_S = 15.0
_EARLY_S, _LATE_S = 1.0, 4.0


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("skew_s", [60.0, -60.0])
def test_start_time_does_not_jump_with_the_clock_of_the_next_primary(tmp_path: Path, skew_s: float) -> None:
    with open_plant(tmp_path, build_clock_shim(tmp_path), nodes=2) as plant:
        plant.mes.configure()
        primary = plant.line.primary()
        assert primary is not None
        for node in plant.line.nodes:
            if node is not primary:
                plant.clocks[node.name].set(skew_s)
        due = time.time() + _WAIT_S
        assert plant.mes.order("J1", StartTime=(datetime.now(UTC) + timedelta(seconds=_WAIT_S)).isoformat())
        primary.kill()
        wait_for(lambda: plant.line.primary() not in {None, primary}, "a failover", 30)
        assert time.time() < due - _EARLY_S, "the failover took too long to see anything"
        wait_for(lambda: plant.mes.states("J1"), "the start of the job", 90)
        assert due - _EARLY_S < time.time() < due + _LATE_S
