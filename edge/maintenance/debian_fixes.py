"""Reads in Debian's changelogs which vulnerabilities an installed server no longer has: its version number stays."""

import gzip
import re
from pathlib import Path

DOCUMENTS = Path("/usr/share/doc")
_VERSION = re.compile(r"\S+ \((?:\d+:)?([\w.]+)")
"""First line of a changelog: `redis (5:8.0.2-3+deb13u2) trixie-security; urgency=high`."""


def fixes_of(product: str, version: str, documents: Path = DOCUMENTS) -> str:
    """Return the changelog of the installed Debian package of a server; empty unless it has this version."""
    for package in (f"{product}-tools", f"{product}-server"):
        try:
            with gzip.open(documents / package / "changelog.Debian.gz") as file:
                text = file.read().decode(errors="replace")
        except OSError:
            continue
        if (found := _VERSION.match(text)) and found[1] == version:
            return text
    return ""
