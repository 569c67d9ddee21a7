"""Derives the system files that a board needs, and writes them atomically."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from edge.features.admin.hardware.board import Board, Boot
from edge.foundation.computer import Computer
from edge.foundation.errors import Refused
from edge.foundation.files import make_directory, write_atomically

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
    written = []
    for file in files:
        if file.differs:
            _replace(file.path, file.wanted)
            written.append(file.path)
    return written


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
        advice = f"It knows: {', '.join(known)}" if known else "It knows no options"
        raise Refused("board", f"the board has no option {', '.join(unknown)}", advice)
    if boot is None:
        return
    lines = [*boot.lines, *(line for option in sorted(set(options)) for line in known[option])]
    yield f"{boot.directory}/{_INCLUDED}", "\n".join([_HEAD, *lines, ""])
    config = computer.path(f"{boot.directory}/config.txt")
    present = _read_present(config)
    if present is None:
        raise Refused(
            "board", f"there is no {config}", "Check the name of the board, and that the boot partition is mounted."
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
        raise Refused("file", f"{path}: cannot be read: {error}") from error


def _replace(path: Path, text: str) -> None:
    try:
        make_directory(path.parent, 0o755)
        write_atomically(path, text.encode(), 0o644)
    except OSError as error:
        raise Refused("file", f"{path}: cannot be written: {error.strerror}", "Call it as root (sudo).") from error
