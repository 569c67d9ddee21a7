"""Checks and executes signed `upgrade` commands as root; it does not trust the gateway that forwards them.

Signature, policy, expiry and repetition are checked here against files that only root writes.
"""

import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from edge.app.features import gateway_settings
from edge.config import Settings, main_file
from edge.features.fleet import upgrade_record
from edge.features.fleet.allowed_commands import (
    CLOCK_S,
    LONGEST_S,
    UPGRADE,
    Admitted,
    FleetPolicy,
    NotAuthentic,
    NotForUs,
    RefusedCommand,
    admit,
    argv,
)
from edge.features.fleet.package_upgrade import Run, run_program, upgrade_package
from edge.features.fleet.settings import FleetSettings
from edge.features.fleet.signature import FleetCommand, FleetState, PublicKey
from edge.features.fleet.signing_keys import read_folder
from edge.features.fleet.upgrade_record import FOLDER, UpgradeRecord
from edge.foundation.errors import EdgeError, Refused
from edge.foundation.text import Text

_VERSION: Final = re.compile(r"[0-9][A-Za-z0-9.+:~-]{0,99}")
_OTHERS_MAY_WRITE: Final = 0o022


class UpgradeHost(Struct, frozen=True):
    """The machine that is upgraded: its settings, its records, its programs, its clock, and the user of its files."""

    settings: Path | None = None
    records: Path = FOLDER
    run: Run = run_program
    now_s: Callable[[], float] = time.time
    owner: int = 0


def execute_upgrade(text: str, host: UpgradeHost, on_begun: Callable[[str], None]) -> UpgradeRecord:
    """Execute the signed command in `text` and return its record.

    `on_begun` is called with the name of the key before anything is changed. Raises Refused for a text that is not
    executed. The modules of this program are imported before: their files are replaced meanwhile.
    """
    with upgrade_record.only_upgrade(host.records) as is_ours:
        if not is_ours:
            raise Refused("upgrade", "another upgrade runs", "Wait for its end.")
        settings = gateway_settings(host.settings, {})
        keys = Path(settings.section(FleetSettings).keys)
        deciding = settings_files(main_file(host.settings, {}), keys)
        if paths := list(writable_by_others(deciding, host.owner)):
            raise Refused(
                "upgrade",
                Text.of("others than root may change {found}", found=paths[0]),
                "Set its owner to root, and chmod go-w.",
            )
        now_s = int(host.now_s())
        command, key = admit_upgrade(text, settings, read_folder(keys), now_s)
        version = wanted_version(command.args)
        upgrade_record.remove_expired(host.records, now_s - LONGEST_S - CLOCK_S)
        begun = UpgradeRecord(id=command.jti, state=FleetState.EXECUTING, exp=command.exp)
        if not upgrade_record.claim(host.records, begun):
            raise Refused("upgrade", "this command was executed before", "Send a new one.")
        on_begun(key.name or key.kid)
        ended = _upgraded(begun, version, host.run)
        upgrade_record.save(host.records, ended)
        return ended


def _upgraded(begun: UpgradeRecord, version: str, run: Run) -> UpgradeRecord:
    try:
        output = upgrade_package(version, run)
    except EdgeError as error:
        reason = " ".join(filter(None, (error.message, error.advice)))
        return msgspec.structs.replace(begun, state=FleetState.FAILED, reason=reason)
    return msgspec.structs.replace(begun, state=FleetState.SUCCESSFUL, output=output)


def admit_upgrade(
    text: str, settings: Settings, keys: Mapping[str, PublicKey], now_s: int
) -> tuple[FleetCommand, PublicKey]:
    """Return the upgrade command of a text and its key. Raises Refused for everything else."""
    fleet = settings.section(FleetSettings)
    if fleet.listen == "off" or fleet.keys_from != "folder":
        problem = "the keys of upgrades are in the folder [fleet] keys, not in the store"
        raise Refused("upgrade", problem, "Set [fleet] listen, and keys_from to folder.")
    policy = FleetPolicy(settings.gateway.name, fleet.labels, fleet.allow)
    match admit(text, policy, keys, now_s):
        case Admitted(command, key) if command.cmd == UPGRADE:
            return command, key
        case Admitted(command):
            raise Refused("upgrade", Text.of("{cmd!r} is not a upgrade", cmd=command.cmd))
        case RefusedCommand(refusal=refusal, reason=reason):
            raise Refused("upgrade", Text.of("{refusal}: {reason}", refusal=refusal.value, reason=reason))
        case NotAuthentic(reason):
            raise Refused("upgrade", reason)
        case NotForUs():
            raise Refused("upgrade", "the command is for other components")


def wanted_version(arguments: tuple[str, ...]) -> str:
    """Return the version that a command names; "" for the newest. Raises Refused."""
    named = [text.partition("=")[2] for text in argv(UPGRADE, arguments)[1:]]
    version = named[-1] if named else ""
    if version and not _VERSION.fullmatch(version):
        raise Refused(
            "upgrade", Text.of("{version!r} is not a version", version=version[:100]), "Name one as in 0.2.0+deb13u1."
        )
    return version


def writable_by_others(paths: Iterable[Path], owner: int = 0) -> Iterator[Path]:
    """Yield the paths that another user than root may change, or replace by others."""
    for path in paths:
        found = path.lstat()
        # In a sticky folder no user replaces the files of another one.
        is_open = found.st_mode & _OTHERS_MAY_WRITE and not found.st_mode & stat.S_ISVTX and not path.is_symlink()
        if found.st_uid not in {0, owner} or is_open:
            yield path


def settings_files(main: Path, keys: Path) -> list[Path]:
    """Return the files by which an upgrade is decided, with all folders above them, also those that links lead to."""
    conf_d = main.parent / "conf.d"
    found: dict[Path, None] = {}
    for path in (main, conf_d, *conf_d.glob("*.toml"), keys, *keys.glob("*")):
        _add_with_targets(path.absolute(), found)
    return list(found)


def _add_with_targets(path: Path, found: dict[Path, None]) -> None:
    for parent in (path, *path.parents):
        if parent not in found and os.path.lexists(parent):
            found[parent] = None
            if parent.is_symlink():
                _add_with_targets(parent.parent / parent.readlink(), found)
