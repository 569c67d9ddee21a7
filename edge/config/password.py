"""Returns the password of a section at the moment at which it is needed."""

import os
from typing import Protocol

from edge.errors import SettingsError


class _Login(Protocol):
    @property
    def password(self) -> str: ...
    @property
    def password_file(self) -> str: ...


def password_of(section: _Login) -> str:
    """Return the password of a section. Raises SettingsError when this user may not read its file."""
    file = section.password_file
    if file and not section.password and not os.access(file, os.R_OK):
        raise SettingsError([f"password_file: {file}: this user may not read it"], "Call edge as root (sudo).")
    return section.password
