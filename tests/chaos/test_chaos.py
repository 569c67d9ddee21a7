"""Whatever is killed, and whenever: every job comes to the end that its recipe demands."""

import pytest

from tests.chaos.campaign import Plan, carry_out
from tests.chaos.check import faults


@pytest.mark.timeout(150)
async def test_thirty_kills_at_any_instant_lose_nothing_and_do_nothing_twice(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    seen = await carry_out(Plan(kills=30, seed=1), tmp_path_factory.mktemp("c"))
    assert faults(seen) == []
    assert len(seen.mes.answers) > 10


@pytest.mark.timeout(60)
async def test_with_an_aof_that_is_synced_every_second_a_killed_gateway_loses_nothing_either(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    plan = Plan(kills=5, seed=2, targets=("gateway",), appendfsync="everysec")
    seen = await carry_out(plan, tmp_path_factory.mktemp("c"))
    assert faults(seen) == []
