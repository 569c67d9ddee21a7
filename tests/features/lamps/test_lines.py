"""A chip needs libgpiod; a simulated one works without a board."""

import asyncio
import sys
from pathlib import Path

import pytest

from edge.features.lamps.lines import FAKE, FakeLines, open_lines
from edge.foundation.errors import SettingsError

LAMPS, BUTTONS = {"red": 17, "green": 22}, {"start": 5}


async def test_missing_libgpiod_is_reported_with_the_package_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gpiod", None)
    monkeypatch.delitem(sys.modules, "edge.features.lamps.gpio", raising=False)
    with pytest.raises(SettingsError) as raised, open_lines("pinctrl-rp1", LAMPS, {}, tmp_path):
        pass
    assert "microdcs-edge[gpio]" in raised.value.advice


async def test_fake_chip_works_without_a_board() -> None:
    with open_lines(FAKE, LAMPS, BUTTONS) as lines:
        await lines.switch({"red": True})
        assert isinstance(lines, FakeLines)
        assert lines.lit == {"red": True, "green": False}
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await lines.pressed()
