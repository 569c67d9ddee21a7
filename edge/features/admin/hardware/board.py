"""Reads board profiles from `hw/boards/*.toml`."""

import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from edge.foundation.errors import Refused, SettingsError

_Line = Annotated[str, Meta(pattern=r"^[^\r\n]+$")]


class Detect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the board is recognized; one match is enough, and the most exact rule wins."""

    compatible: Annotated[tuple[str, ...], Meta(description="Words of /proc/device-tree/compatible.")] = ()
    models: Annotated[tuple[str, ...], Meta(description="Beginnings of /proc/device-tree/model.")] = ()
    virtual: Annotated[bool, Meta(description="A container or a virtual machine.")] = False
    dmi: Annotated[bool, Meta(description="Whatever has a DMI table.")] = False


class Watchdog(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The watchdog of the board."""

    timeout_s: Annotated[int, Meta(ge=1, le=600, description="Seconds after which it resets a system that hangs.")]


class Rtc(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The battery-backed clock of the board."""

    built_in: Annotated[bool, Meta(description="Whether the board has one.")]
    advice: Annotated[str, Meta(description="What to do when there is none, or it forgets.")]


class Gpio(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The GPIO lines that are free for the gateway."""

    chip: Annotated[str, Meta(description="Label of the chip; its number changes from one kernel to the next.")]


class Serial(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A serial port of the board itself."""

    port: Annotated[str, Meta(pattern="^/dev/[^/]", description="Its device.")]
    meaning: Annotated[str, Meta(description="Where it is on the board.")]


class Boot(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Lines of config.txt for the firmware of a Raspberry Pi."""

    directory: Annotated[str, Meta(pattern="^[^/]", description="Where config.txt is, seen from /.")]
    lines: Annotated[tuple[_Line, ...], Meta(description="Lines that are always written.")] = ()
    options: Annotated[dict[str, tuple[_Line, ...]], Meta(description="Lines of each option.")] = {}


class Board(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A board profile. Missing parts are absent or unknown."""

    name: Annotated[str, Meta(min_length=1, description="What people call it.")]
    detect: Detect
    watchdog: Watchdog | None = None
    rtc: Rtc | None = None
    gpio: Gpio | None = None
    serial: tuple[Serial, ...] = ()
    boot: Boot | None = None


def profile_directory() -> Path:
    """Return the directory of the hardware files: that of a checkout, else the installed one."""
    checkout = Path(__file__).parents[4] / "hw"
    return checkout if (checkout / "boards").is_dir() else Path(sys.prefix, "share", "microdcs-edge", "hw")


def read_boards(directory: Path) -> dict[str, Board]:
    """Read every profile, named after its file. Raises SettingsError with all faults."""
    boards = {}
    problems = []
    for file in sorted(directory.glob("*.toml")):
        try:
            boards[file.stem] = msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), Board)
        except (OSError, ValueError) as error:
            problems.append(f"{file}: {error}")
    if problems or not boards:
        raise SettingsError(problems or [f"{directory}: there is no board profile"], "Install the package again.")
    return boards


def find_board(boards: Mapping[str, Board], name: str) -> Board:
    """Return the board of that name. Raises Refused."""
    if name not in boards:
        raise Refused("board", f"there is no board {name!r}", f"Known are: {', '.join(boards)}")
    return boards[name]
