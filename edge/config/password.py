"""Returns the password of a section at the moment at which it is needed."""

from pathlib import Path
from typing import Protocol

from edge.foundation.errors import SettingsError


class _Login(Protocol):
    @property
    def password(self) -> str: ...
    @property
    def password_file(self) -> str: ...


def password_of(section: _Login) -> str:
    """Return the password of a section. Raises SettingsError when this user may not read its file."""
    if section.password_file and not section.password:
        _require_access(Path(section.password_file))
    return section.password


def _require_access(file: Path) -> None:
    try:
        file.open("rb").close()
    except PermissionError as error:
        problem = f"password_file: {file}: this user may not read it"
        raise SettingsError([problem], "Call edge as root (sudo).") from error
    except OSError:  # an empty password was read, and its file is gone
        pass
