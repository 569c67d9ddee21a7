"""`edge hw`: detects and checks the board, and writes the files that it needs."""

import difflib
from collections.abc import Iterator
from pathlib import Path

import click

from edge.cli.terminal.command_group import OpenGroup
from edge.cli.terminal.output import print_findings, print_json
from edge.cli.terminal.store_access import json_option
from edge.features.admin.board import Board, BoardFile, find_board, profile_directory, read_boards, wanted_files, write
from edge.features.admin.board import detect as detect_board
from edge.features.admin.board_check import examine_board
from edge.features.admin.host_check import clock_finding
from edge.foundation.clock_sync import read_clock
from edge.foundation.computer import Computer

_root_option = click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default="/",
    help="Where the system is mounted, to prepare an image. [default: /]",
)
_board_option = click.option("--board", "name", help="The board. [default: the one that is detected]")


@click.group(cls=OpenGroup)
def hw() -> None:
    """Detect and check the board, and write the files that it needs.

    Profiles of boards are files in /usr/share/microdcs-edge/hw/boards.
    """


@hw.command(epilog="Example: edge hw detect")
@_root_option
@json_option
def detect(root: Path, *, as_json: bool) -> None:
    """Detect the board.

    The exit status is 1 when no profile matches.
    """
    computer, name, board = _select_board(root, None)
    if as_json:
        print_json({"board": name, "name": board.name, "model": computer.model()})
    else:
        click.echo(f"{name}  {board.name}  ({computer.model() or 'does not print_text what it is'})")


@hw.command(epilog="Example: edge hw check")
@_board_option
@_root_option
@json_option
def check(name: str | None, root: Path, *, as_json: bool) -> None:
    """Check watchdog, real-time clock, GPIO, serial ports, clock, memory and storage.

    The exit status is 0 without a fault, 1 with a warning, 2 with a failure.
    """
    computer, _, board = _select_board(root, name)
    findings = list(examine_board(computer, board))
    if root == Path("/"):
        findings.append(clock_finding(read_clock()))
    raise SystemExit(print_findings(findings, as_json=as_json))


@hw.command(epilog="Example: edge hw apply --with rtc-ds3231 --dry-run")
@_board_option
@click.option("--with", "options", multiple=True, help="An option of the board, such as rtc-ds3231.")
@click.option("--dry-run", is_flag=True, help="Show the changes without writing.")
@_root_option
@json_option
def apply(name: str | None, options: tuple[str, ...], root: Path, *, dry_run: bool, as_json: bool) -> None:
    """Write what the board needs: udev rules, watchdog, journal, access of the service to devices, lines of config.txt.

    Unchanged files are not written. The changes take effect after a reboot.
    """
    computer, chosen, board = _select_board(root, name)
    files = wanted_files(computer, board, profile_directory(), options)
    changed = [str(file.path) for file in files if file.differs] if dry_run else [*map(str, write(files))]
    if as_json:
        print_json({"board": chosen, "changed": changed})
        return
    if dry_run:
        click.echo("".join(line for file in files for line in _difference(file)), nl=False)
    for path in changed:
        click.echo(f"{'would write' if dry_run else 'wrote'} {path}")
    click.echo(_summary(chosen, len(changed), dry_run=dry_run))


def _select_board(root: Path, name: str | None) -> tuple[Computer, str, Board]:
    """Return the computer, and the board that is named or detected."""
    computer = Computer(root)
    boards = read_boards(profile_directory() / "boards")
    chosen = name or detect_board(computer, boards)
    return computer, chosen, find_board(boards, chosen)


def _difference(file: BoardFile) -> Iterator[str]:
    before = (file.present or "").splitlines(keepends=True)
    now = file.wanted.splitlines(keepends=True)
    return difflib.unified_diff(before, now, str(file.path), str(file.path))


def _summary(board: str, changed: int, *, dry_run: bool) -> str:
    if not changed:
        return f"{board}: every file is up to date"
    return f"{board}: nothing was written" if dry_run else f"{board}: reboot, then: edge hw check"
