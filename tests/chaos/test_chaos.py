"""Every job reaches the end that its recipe demands, after kills and outages at any time."""

import pytest

from tests.chaos.campaign import carry_out
from tests.chaos.check import faults
from tests.chaos.kills import Kills
from tests.chaos.outages import OUTAGES, How, Outage, Part

PRINTED = {"redis": "store unavailable, retrying", "broker": "mqtt not connected, retrying"}


@pytest.mark.timeout(150)
async def test_twelve_kills_lose_no_event_and_repeat_no_command(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    seen = await carry_out(Kills(12), tmp_path_factory.mktemp("c"))
    assert faults(seen) == []
    assert len(seen.mes.answers) > 4


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_kills_of_two_gateways_on_one_store_lose_and_repeat_nothing(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    seen = await carry_out(Kills(20), tmp_path_factory.mktemp("c"), seed=3, gateways=2)
    assert faults(seen) == []
    assert len(seen.mes.answers) > 4


@pytest.mark.slow
async def test_killed_gateway_loses_no_data_with_everysec(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    kills = Kills(5, targets=("gateway",))
    seen = await carry_out(kills, tmp_path_factory.mktemp("c"), seed=2, appendfsync="everysec")
    assert faults(seen) == []


@pytest.mark.parametrize(("part", "how"), OUTAGES)
@pytest.mark.slow
async def test_process_survives_short_and_long_outages(
    tmp_path_factory: pytest.TempPathFactory,
    part: Part,
    how: How,
) -> None:
    seen = await carry_out(Outage(part, how, (0.2, 2.0)), tmp_path_factory.mktemp("c"))
    assert faults(seen) == []
    assert seen.starts == 1
    # Who hangs for less than five seconds is only slow.
    if how == "killed":
        assert PRINTED[part] in seen.printed, seen.printed
