"""The page runs a command of the program in a separate process with a time limit."""

import asyncio
import logging

import pytest

from edge.features.page.tools import EndedCommand, LogMemory, Simulator, remembered_log, run_edge
from edge.foundation.errors import LocalFault, Refused


async def test_output_of_a_command_is_returned() -> None:
    ended = await run_edge("--version", within_s=60)
    assert (ended.status, b"edge" in ended.output) == (0, True)


async def test_command_beyond_its_time_limit_is_ended() -> None:
    with pytest.raises(LocalFault, match="more than 0 s"):
        await run_edge("--version", within_s=0)


async def test_command_with_too_much_output_is_refused() -> None:
    with pytest.raises(Refused, match="more than 2 bytes"):
        await run_edge("--version", within_s=60, most_bytes=2)


async def test_simulations_run_one_after_the_other() -> None:
    running, most = 0, 0

    async def run(*_: str, within_s: float) -> EndedCommand:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return EndedCommand(0, b'{"within": %d}' % within_s, b"")

    simulator = Simulator(run)
    assert await asyncio.gather(*(simulator.simulate({}, None) for _ in range(3))) == [{"within": 15}] * 3
    assert most == 1


async def test_simulations_beyond_the_waiting_ones_are_refused() -> None:
    ends = asyncio.Event()

    async def run(*_: str, within_s: float) -> EndedCommand:
        await ends.wait()
        return EndedCommand(0, b'{"within": %d}' % within_s, b"")

    simulator = Simulator(run, most_waiting=2)
    waiting = [asyncio.create_task(simulator.simulate({}, None)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(Refused, match="2 simulations wait"):
        await simulator.simulate({}, None)
    ends.set()
    await asyncio.gather(*waiting)
    assert await simulator.simulate({}, None) == {"within": 15}


def test_newest_records_are_kept_and_shortened() -> None:
    with remembered_log() as memory:
        logging.getLogger("edge.x").warning("y" * 1000)
    logging.getLogger("edge.x").warning("after the block")
    (line,) = memory.lines
    assert (line.level, line.text) == ("warning", "y" * 500)


def test_oldest_record_is_dropped() -> None:
    memory = LogMemory(lines=2)
    for text in ("a", "b", "c"):
        memory.emit(logging.LogRecord("edge", logging.INFO, "", 0, text, None, None))
    assert [line.text for line in memory.lines] == ["b", "c"]
