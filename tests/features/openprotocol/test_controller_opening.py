"""The opening of a connection: release and results first; nothing optional delays them, or a start."""

import asyncio

import pytest

from edge.features.openprotocol.controller_opening import OptionalExchanges
from tests.conftest import WaitUntil
from tests.equipment.strict_controller import TIMES, attached, bolt, completed, strict
from tests.outside.devices import openprotocol_tool
from tests.outside.devices.openprotocol_controller import open_strict_controller
from tests.outside.devices.openprotocol_quirks import Quirks
from tests.outside.devices.openprotocol_tool import Habits

OPTIONAL = frozenset({8, 10, 12, 30, 32, 40, 51, 70, 80, 216})
SLOW = TIMES.__class__(TIMES.session.__class__(connect=10.0, answer=10.0, optional=5.0), poll=0.2, curves=0.1)


@pytest.fixture
def fifty_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Provide a controller with 50 parameter sets: each name takes one request."""
    for number in range(5, 51):
        monkeypatch.setitem(openprotocol_tool._TARGET, number, 1000)  # noqa: SLF001


@pytest.mark.parametrize("link", [False, True])
async def test_unanswered_lists_delay_no_acknowledgement(wait_until: WaitUntil, *, link: bool) -> None:
    """The controller closes after three times 0.3 s without one; each list is waited for 5 s."""
    quirks = Quirks(unanswered=OPTIONAL, resends=True, ack_seconds=0.3, link=link)
    async with open_strict_controller(quirks) as controller:
        controller.tool.tighten(vin="OWN")
        async with attached(controller, times=SLOW, clock="set") as bench:
            await wait_until(lambda: controller.acknowledged == [1])
            await wait_until(lambda: bench.station.late_results)
            assert (controller.connections, controller.violations) == (1, [])


@pytest.mark.usefixtures("fifty_sets")
async def test_names_of_50_parameter_sets_delay_no_acknowledgement(wait_until: WaitUntil) -> None:
    async with open_strict_controller(Quirks(latency=0.02, resends=True, ack_seconds=0.3)) as controller:
        controller.tool.tighten(vin="OWN")
        async with attached(controller) as bench:
            await wait_until(lambda: controller.acknowledged == [1])
            assert controller.mids().count(12) < 50
            await wait_until(lambda: "parameter set 50 (SET 50)" in bench.equipment.programs)
            assert (controller.connections, controller.violations) == (1, [])


async def test_unanswered_optional_messages_are_not_a_silence(wait_until: WaitUntil) -> None:
    """Each is waited for 0.5 s, silence ends a connection after 2 s: heartbeats are answered meanwhile."""
    times = TIMES.__class__(TIMES.session.__class__(optional=0.5, silence=2.0), poll=0.2, curves=0.1)
    unanswered = OPTIONAL - {12, 32, 216}
    # A make with a heartbeat each second.
    quirks = Quirks(unanswered=unanswered, greeting={"supplier": "CEL"})
    async with strict(wait_until, quirks, times=times, traces="on", clock="set") as bench:
        await wait_until(lambda: unanswered <= set(bench.controller.mids()))
        assert (bench.controller.connections, bench.controller.violations) == (1, [])


@pytest.mark.usefixtures("fifty_sets")
async def test_release_comes_first_on_each_new_connection(wait_until: WaitUntil) -> None:
    async with strict(wait_until, Quirks(latency=0.02), Habits(absent=True)) as bench:
        controller = bench.controller
        for _ in range(2):
            async with controller.unplugged():
                controller.tool.enable()
                before = len(controller.received)
            await wait_until(lambda: not controller.tool.enabled)
            await wait_until(lambda: bench.equipment.connected)
            assert controller.mids()[before : before + 3] == [1, 42, 60]


async def test_start_does_not_wait_for_optional_answers(wait_until: WaitUntil) -> None:
    """At most one message without an answer is on its way when the command comes."""
    async with strict(wait_until, Quirks(unanswered=OPTIONAL), times=SLOW) as bench:
        assert (await completed(bench, wait_until, bolt(1)))["evaluation"] == "OK"
        mids = bench.controller.mids()
        assert len(OPTIONAL & set(mids[: mids.index(43)])) <= 1
        await wait_until(lambda: not bench.controller.tool.enabled)


async def test_unknown_parameter_set_is_refused_before_the_list_is_read(wait_until: WaitUntil) -> None:
    """The controller declines it; the reason names those that there are."""
    async with strict(wait_until, Quirks(latency=0.05)) as bench:
        await bench.equipment.send(bolt(1, parameter_set=99))
        await wait_until(lambda: bench.station.answers)
        assert "the controller has no parameter set 99; it has 1, 2, 3, 4" in str(bench.station.answers[0].error)
        assert bench.controller.tool.entries("enabled") == []


async def test_optional_exchange_is_repeated_after_an_urgent_one() -> None:
    exchanges, begun = OptionalExchanges(grace_s=0.01), asyncio.Event()
    calls: list[int] = []

    async def exchange() -> str:
        calls.append(len(calls))
        begun.set()
        if len(calls) == 1:
            await asyncio.Event().wait()
        return "answer"

    running = asyncio.create_task(exchanges.run(exchange))
    await begun.wait()
    with exchanges.urgent():
        await asyncio.sleep(0.05)
        assert (calls, running.done()) == ([0], False)
    assert await running == "answer"
    assert calls == [0, 1]


async def test_failed_optional_exchange_raises_its_error() -> None:
    async def exchange() -> None:
        raise ValueError("lost")

    with pytest.raises(ValueError, match="lost"):
        await OptionalExchanges().run(exchange)
