"""GPIO lines are found by the label of their chip, switched by name, and report pressed buttons."""

import asyncio
import os
import select
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import gpiod
import pytest
from gpiod.line import Bias, Direction, Edge, Value

from edge.features.lamps.lines import open_lines
from edge.foundation.errors import Unavailable
from tests.conftest import WaitUntil

LAMPS, BUTTONS = {"red": 17, "green": 22}, {"start": 5}


class FakeRequest:
    """Lines of a chip that is not there; a press is a byte in its pipe."""

    def __init__(self, lines: dict[int, gpiod.LineSettings]) -> None:
        self.lines = lines
        self.values: dict[int, Value] = {}
        self.failure: OSError | None = None
        self.fd, self._end = os.pipe()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)
        os.close(self._end)

    def set_values(self, values: dict[int, Value]) -> None:
        if self.failure:
            raise self.failure
        self.values |= values

    def press(self, offset: int) -> None:
        os.write(self._end, bytes([offset]))

    def read_edge_events(self) -> list[SimpleNamespace]:
        if self.failure:
            raise self.failure
        return [SimpleNamespace(line_offset=offset) for offset in os.read(self.fd, 16)]


@dataclass
class FakeBoard:
    """Two chips; what was requested of which."""

    devices: Path
    labels: dict[str, str]
    requests: list[tuple[str, FakeRequest]] = field(default_factory=list)
    taken: OSError | None = None

    def chip(self, path: str) -> Any:
        board = self

        class Chip:
            def __enter__(self) -> Self:
                return self

            def __exit__(self, *_: object) -> None:
                pass

            def get_info(self) -> SimpleNamespace:
                return SimpleNamespace(label=board.labels[Path(path).name])

        return Chip()

    def request(self, path: str, lines: dict[int, gpiod.LineSettings], _consumer: str) -> FakeRequest:
        if self.taken:
            raise self.taken
        self.requests.append((Path(path).name, FakeRequest(lines)))
        return self.requests[-1][1]


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeBoard:
    """A board whose header is behind the second chip."""
    board = FakeBoard(tmp_path, {"gpiochip0": "brcmstb", "gpiochip11": "pinctrl-rp1"})
    for name in board.labels:
        (tmp_path / name).touch()
    monkeypatch.setattr(gpiod, "Chip", board.chip)
    monkeypatch.setattr(gpiod, "request_lines", board.request)
    return board


async def test_lines_are_requested_from_the_chip_with_the_label(board: FakeBoard) -> None:
    with open_lines("pinctrl-rp1", LAMPS, BUTTONS, board.devices):
        (first, lamps), (second, buttons) = board.requests
        assert (first, second) == ("gpiochip11", "gpiochip11")
        assert {settings.direction for settings in lamps.lines.values()} == {Direction.OUTPUT}
        assert lamps.lines.keys() == {17, 22}
        start = buttons.lines[5]
        assert (start.direction, start.edge_detection, start.bias) == (Direction.INPUT, Edge.RISING, Bias.PULL_UP)
        assert (start.active_low, start.debounce_period.total_seconds()) == (True, 0.03)


async def test_lamps_are_switched_by_name(board: FakeBoard) -> None:
    with open_lines("pinctrl-rp1", LAMPS, {}, board.devices) as lines:
        await lines.switch({"red": True, "green": False})
        assert board.requests[0][1].values == {17: Value.ACTIVE, 22: Value.INACTIVE}


async def test_presses_are_reported_in_order(board: FakeBoard) -> None:
    with open_lines("pinctrl-rp1", {}, {"start": 5, "stop": 6}, board.devices) as lines:
        for offset in (6, 5, 5):
            board.requests[0][1].press(offset)
        assert [await lines.pressed() for _ in range(3)] == ["stop", "start", "start"]
        await lines.switch({})


async def test_lost_lines_end_the_wait_for_a_press(board: FakeBoard) -> None:
    with open_lines("pinctrl-rp1", {}, BUTTONS, board.devices) as lines:
        buttons = board.requests[0][1]
        buttons.failure = OSError(19, "No such device")
        buttons.press(5)
        with pytest.raises(Unavailable, match="No such device"):
            await lines.pressed()


async def test_bouncing_line_without_reader_keeps_the_first_presses(board: FakeBoard, wait_until: WaitUntil) -> None:
    with open_lines("pinctrl-rp1", {}, BUTTONS, board.devices) as lines:
        buttons = board.requests[0][1]
        for _ in range(200):
            buttons.press(5)
        await wait_until(lambda: not select.select([buttons.fd], [], [], 0)[0])
        assert [await lines.pressed() for _ in range(100)] == ["start"] * 100
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await lines.pressed()


async def test_failed_lamp_write_raises_unavailable(board: FakeBoard) -> None:
    with open_lines("pinctrl-rp1", LAMPS, {}, board.devices) as lines:
        board.requests[0][1].failure = OSError(5, "Input/output error")
        with pytest.raises(Unavailable, match="Input/output error"):
            await lines.switch({"red": True})


async def test_line_in_use_is_reported(board: FakeBoard) -> None:
    board.taken = OSError(16, "Device or resource busy")
    with pytest.raises(Unavailable, match="busy"), open_lines("pinctrl-rp1", LAMPS, {}, board.devices):
        pass


async def test_missing_chip_is_reported_with_the_available_chips(board: FakeBoard) -> None:
    with pytest.raises(Unavailable) as raised, open_lines("pinctrl-bcm2711", LAMPS, {}, board.devices):
        pass
    assert "pinctrl-rp1" in raised.value.advice
