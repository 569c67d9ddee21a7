"""Find files of the gateway that the user of its service cannot read, although root can."""

import os
import pwd
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from edge.app.gateway_files import locate_files
from edge.config import Settings
from edge.config.load import DEFAULT_DIRECTORY

USER = "microdcs-edge"

_HIDDEN = ("/home/", "/root/", "/run/user/")
"""Not visible in the service: ProtectHome=yes of its unit (systemd.exec(5))."""
_PASSWORDS = f"{DEFAULT_DIRECTORY}/passwords"
"""Files for root only, which systemd passes to the service as credentials; hidden files and folders it does not."""
_PRINT_UNREADABLE = 'for file; do [ -r "$file" ] || printf "%s\\0" "$file"; done'

FindUnreadable = Callable[[Sequence[Path]], Iterable[Path]]


def access_problems(
    main: Path,
    settings: Settings | None,
    unreadable: FindUnreadable | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Iterator[str]:
    """Yield a problem for each file that the service cannot read; without `settings` of the settings files only.

    Only root can test the permissions of another user, and only the installed gateway has its own user.
    """
    examine = unreadable or _unreadable_by_service
    if unreadable is None and (os.geteuid() != 0 or main.parent != Path(DEFAULT_DIRECTORY) or not _exists(USER)):
        return
    # What systemd passes to this process, it passes to the service.
    passed = {main.parent / "passwords", Path(environ.get("CREDENTIALS_DIRECTORY", main.parent / "passwords"))}
    passwords = set(_password_files(settings, passed)) if settings else set[Path]()
    named = _files(settings, main) if settings else ()
    files = sorted({main, *main.parent.glob("conf.d/*.toml"), *named, *passwords})
    hidden = [file for file in files if str(file).startswith(_HIDDEN)]
    for file in hidden:
        yield f"{file}: the service has no access to this directory; move the file to {DEFAULT_DIRECTORY}"
    for file in examine([file for file in files if file not in hidden and file.exists()]):
        permit = f"chgrp {USER} {file} && chmod g+r {file}"
        move = (
            f"move it to {_PASSWORDS}/{file.name.lstrip('.')}, which systemd passes to the service, and name that file"
        )
        yield f"{file}: {USER} may not read it; " + (move if file in passwords else f"permit it: {permit}")


def may_write(directory: Path) -> bool:
    """Return whether the service may write a directory; another user than root can test only its own permissions."""
    if os.geteuid() != 0 or not _exists(USER):
        return os.access(directory, os.W_OK | os.X_OK)
    user = pwd.getpwnam(USER)
    tried = subprocess.run(  # noqa: S603  a fixed command; the directory is its argument
        ("/bin/sh", "-c", '[ -w "$1" ] && [ -x "$1" ]', "sh", str(directory)),
        user=user.pw_uid,
        group=user.pw_gid,
        extra_groups=os.getgrouplist(USER, user.pw_gid),
        check=False,
        cwd="/",
    )
    return tried.returncode == 0


def _files(settings: Settings, main: Path) -> Iterator[Path]:
    for name, file in locate_files(settings, main).existing():
        if not name.startswith("settings/passwords/"):
            yield file


def _password_files(settings: Settings, passed: Collection[Path]) -> Iterator[Path]:
    """Yield the files of passwords that are in no directory which systemd passes to the service."""
    sections = (settings.redis, settings.mqtt, *settings.southbound.values(), *settings.sections.values())
    named = [getattr(section, "password_file", "") for section in sections]
    for file in map(Path, (*named, settings.redis.sentinel_password_file)):
        if file.name and (file.parent not in passed or file.name.startswith(".")):
            yield file


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


def _unreadable_by_service(files: Sequence[Path]) -> list[Path]:
    """Try to read as the user of the service: permissions, ACLs and every directory above count."""
    user = pwd.getpwnam(USER)
    groups = os.getgrouplist(USER, user.pw_gid)
    command = ("/bin/sh", "-c", _PRINT_UNREADABLE, "sh", *map(str, files))
    tried = subprocess.run(  # noqa: S603  a fixed command; the files are its arguments
        command, user=user.pw_uid, group=user.pw_gid, extra_groups=groups, capture_output=True, check=True, cwd="/"
    )
    return [Path(os.fsdecode(data)) for data in tried.stdout.split(b"\0") if data]
