"""Reads board profiles from `hw/boards/*.toml`."""

import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from edge.foundation.computer import Computer
from edge.foundation.errors import Refused, SettingsError
from edge.foundation.files import make_directory, write_atomically
from edge.foundation.text import Text

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
    """A board profile. Missing parts are absent or unknown.

    Example: {"name": "Industrial PC", "detect": {"dmi": true}, "watchdog": {"timeout_s": 30}}
    """

    name: Annotated[str, Meta(min_length=1, description="What people call it.")]
    detect: Detect
    watchdog: Watchdog | None = None
    rtc: Rtc | None = None
    gpio: Gpio | None = None
    serial: tuple[Serial, ...] = ()
    boot: Boot | None = None


def profile_directory() -> Path:
    """Return the directory of the hardware files: that of a checkout, else the installed one."""
    checkout = Path(__file__).parents[3] / "hw"
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
        raise SettingsError(
            problems or [Text.of("{directory}: there is no board profile", directory=directory)],
            "Install the package again.",
        )
    return boards


def find_board(boards: Mapping[str, Board], name: str) -> Board:
    """Return the board of that name. Raises Refused."""
    if name not in boards:
        raise Refused(
            "board",
            Text.of("there is no board {name!r}", name=name),
            Text.of("Known are: {boards}", boards=", ".join(boards)),
        )
    return boards[name]


def detect(computer: Computer, boards: Mapping[str, Board]) -> str:
    """Return the name of the board with the best matching rule. Raises Refused when none matches."""
    fits = {name: rank for name, board in boards.items() if (rank := _rank(computer, board.detect))}
    if not fits:
        model = computer.model() or Text.of("an unknown computer model")
        raise Refused(
            "board",
            Text.of("no board profile matches {model}", model=model),
            Text.of("Name the most similar with --board: {boards}", boards=", ".join(sorted(boards))),
        )
    return max(fits, key=lambda name: fits[name])


def _rank(computer: Computer, rule: Detect) -> int:
    """Return how exactly a rule matches: compatible string, then model, then kind of computer; 0 means no match."""
    if set(rule.compatible) & set(computer.read("/proc/device-tree/compatible").splitlines()):
        return 4
    if any(computer.model().startswith(model) for model in rule.models):
        return 3
    if rule.virtual and computer.is_virtual():
        return 2
    return int(rule.dmi and computer.path("/sys/class/dmi/id").exists())


_INCLUDED = "microdcs-edge.txt"
_HEAD = "# Written by `edge hw apply`: the next call overwrites this file.\n"


class BoardFile(Struct, frozen=True):
    """The wanted and the present content of a file; None when it is absent."""

    path: Path
    wanted: str
    present: str | None

    @property
    def differs(self) -> bool:
        """Whether the file has to be written."""
        return self.wanted != self.present


def wanted_files(computer: Computer, board: Board, installed: Path, options: Iterable[str] = ()) -> list[BoardFile]:
    """Return every file that the board needs; `options` are some of the board's own. Raises Refused."""
    texts = dict(_common(installed))
    if board.watchdog:
        texts["etc/systemd/system.conf.d/50-microdcs-edge.conf"] = (
            f"{_HEAD}\n[Manager]\nRuntimeWatchdogSec={board.watchdog.timeout_s}\n"
        )
    if board.watchdog or board.gpio or board.serial or board.boot:
        texts["etc/systemd/system/microdcs-edge.service.d/50-hardware.conf"] = _access(board)
    texts |= _firmware(computer, board.boot, list(options))
    return [BoardFile(computer.path(name), text, _read_present(computer.path(name))) for name, text in texts.items()]


def write(files: Iterable[BoardFile]) -> list[Path]:
    """Write the changed files; return their paths. Raises Refused when a file cannot be written."""
    paths = []
    for file in files:
        if file.differs:
            _replace(file.path, file.wanted)
            paths.append(file.path)
    return paths


def _common(installed: Path) -> Iterator[tuple[str, str]]:
    """Yield what every board needs, as it came with the program."""
    for target, source in (
        ("etc/udev/rules.d/60-microdcs-edge.rules", "udev/60-microdcs-edge.rules"),
        ("etc/systemd/journald.conf.d/50-microdcs-edge.conf", "systemd/journald.conf"),
        ("etc/sysusers.d/microdcs-edge-hardware.conf", "systemd/sysusers.conf"),
    ):
        yield target, (installed / source).read_text(encoding="utf-8")


def _access(board: Board) -> str:
    """Write the drop-in that lets the gateway's unit open what the board has: serial ports, free GPIO lines."""
    lines = [
        "PrivateDevices=no",
        "DeviceAllow=char-hidraw rw",
        "DeviceAllow=char-ttyACM rw",
        "DeviceAllow=char-ttyUSB rw",
    ]
    lines += (f"DeviceAllow={serial.port} rw" for serial in board.serial)
    lines.append("SupplementaryGroups=dialout")
    if board.gpio:
        lines += ["DeviceAllow=char-gpiochip rw", "SupplementaryGroups=gpio"]
    return "\n".join([_HEAD, "[Service]", *lines, ""])


def _firmware(computer: Computer, boot: Boot | None, options: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the file that config.txt includes, and config.txt with the line that includes it."""
    known = boot.options if boot else {}
    if unknown := sorted(set(options) - set(known)):
        advice = Text.of("It knows: {known}", known=", ".join(known)) if known else "It knows no options"
        raise Refused("board", Text.of("the board has no option {unknown}", unknown=", ".join(unknown)), advice)
    if boot is None:
        return
    lines = [*boot.lines, *(line for option in sorted(set(options)) for line in known[option])]
    yield f"{boot.directory}/{_INCLUDED}", "\n".join([_HEAD, *lines, ""])
    config = computer.path(f"{boot.directory}/config.txt")
    present = _read_present(config)
    if present is None:
        raise Refused(
            "board",
            Text.of("there is no {config}", config=config),
            "Check the name of the board, and that the boot partition is mounted.",
        )
    if f"include {_INCLUDED}" not in present.splitlines():
        # [all] ends any filter, so that the line applies to every board.
        present = f"{present.rstrip()}\n\n[all]\ninclude {_INCLUDED}\n"
    yield f"{boot.directory}/config.txt", present


def _read_present(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise Refused("file", Text.of("{path}: cannot be read: {reason}", path=path, reason=error)) from error


def _replace(path: Path, text: str) -> None:
    try:
        make_directory(path.parent, 0o755)
        write_atomically(path, text.encode(), 0o644)
    except OSError as error:
        raise Refused(
            "file",
            Text.of("{path}: cannot be written: {reason}", path=path, reason=error.strerror),
            "Call it as root (sudo).",
        ) from error
