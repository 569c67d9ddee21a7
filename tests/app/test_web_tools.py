"""The page runs a command of the program in a process of its own, within a time."""

import pytest

from edge.app.web_tools import run_edge
from edge.errors import Unavailable


async def test_output_of_a_command_is_returned() -> None:
    assert b"edge" in await run_edge("--version", within_s=60)


async def test_command_that_takes_too_long_is_ended() -> None:
    with pytest.raises(Unavailable, match="more than 0 s"):
        await run_edge("--version", within_s=0)
