"""Debian fixes vulnerabilities without a new upstream version; the fixes are read from the changelog."""

import gzip
from pathlib import Path

import pytest

from edge.maintenance.debian_fixes import fixes_of

pytestmark = pytest.mark.slow

CHANGELOG = "redis (5:8.0.2-3+deb13u2) trixie-security; urgency=high\n\n  * CVE-2025-49844: a Lua script\n"


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    file = tmp_path / "redis-tools" / "changelog.Debian.gz"
    file.parent.mkdir()
    file.write_bytes(gzip.compress(CHANGELOG.encode()))
    return tmp_path


def test_fixes_are_read_from_the_changelog_of_the_installed_version(documents: Path) -> None:
    assert "CVE-2025-49844" in fixes_of("redis", "8.0.2", documents)


@pytest.mark.parametrize(("product", "version"), [("redis", "8.0.3"), ("valkey", "8.0.2")])
def test_changelog_of_another_server_is_ignored(documents: Path, product: str, version: str) -> None:
    assert fixes_of(product, version, documents) == ""


def test_damaged_changelog_is_ignored(documents: Path) -> None:
    (documents / "redis-tools" / "changelog.Debian.gz").write_text(CHANGELOG)
    assert fixes_of("redis", "8.0.2", documents) == ""
