"""Tests of the values of the equipment port."""

import re

from edge.sfc.signal import Phase
from edge.station.equipment import Command


def command(command_id: str) -> Command:
    return Command(command_id, Phase.START, "tighten.v1", "station-1", "J1", "R1", "a", 1, {})


def test_mark_is_short_stable_and_different_for_each_command() -> None:
    first, second = command("J1/R1/a/1"), command("J1/R1/a/2")
    assert first.mark == command("J1/R1/a/1").mark
    assert first.mark != second.mark
    assert re.fullmatch("[a-z2-7]{20}", first.mark)
