"""The station page of the demo: its address, and the person who may control jobs there."""

import json
import secrets
from pathlib import Path

from msgspec import Struct, field

from edge.access.users import User, hash_password, write_user
from edge.features.simulator.broker import free_port
from edge.model.role import Role

NAME = "demo"
_USERS_FILE = "people"


class DemoPage(Struct, frozen=True):
    """The page at a free port of this host; the person has a password of this run."""

    port: int = field(default_factory=free_port)
    password: str = field(default_factory=lambda: secrets.token_urlsafe(9))

    @property
    def address(self) -> str:
        """Return the address for a browser on this machine."""
        return f"http://localhost:{self.port}/"

    def section(self, users_file: Path) -> str:
        """Write the user, and return the sections of the settings."""
        write_user(users_file, User(NAME, Role.ENGINEER, hash_password(self.password)))
        return f"""
[web]
listen = "127.0.0.1:{self.port}"
kiosk = "on"

[users]
file = {json.dumps(str(users_file))}
"""


def page_section(page: DemoPage | None, directory: Path) -> str:
    """Return the settings of the page with its user in a directory; nothing without a page."""
    return page.section(directory / _USERS_FILE) if page else ""
