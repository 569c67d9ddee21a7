"""The versions of the package are read from apt; without it the check is refused with the reason."""

import pytest

from edge.app.package_versions import PackageVersions, find_versions, parse_policy
from edge.foundation.errors import Refused, Unavailable

POLICY = """microdcs-edge:
  Installed: 0.2.0
  Candidate: 0.3.0
  Version table:
     0.3.0 500
        500 http://packages.example.com trixie/main amd64 Packages
 *** 0.2.0 100
        100 /var/lib/dpkg/status
"""


def test_versions_are_read_from_the_policy() -> None:
    assert parse_policy(POLICY) == PackageVersions("0.2.0", "0.3.0")
    assert parse_policy("N: Unable to locate package") is None


@pytest.mark.parametrize(("candidate", "newer"), [("0.3.0", True), ("0.2.0", False), ("(none)", False)])
async def test_upgrade_is_offered_only_to_a_newer_version(candidate: str, newer: bool) -> None:  # noqa: FBT001 - a parameter
    package_versions = await find_versions(("echo", POLICY.replace("0.3.0", candidate)))
    assert package_versions.is_newer is newer


@pytest.mark.parametrize(
    "ask",
    [("/does/not/exist",), ("echo", ""), ("echo", POLICY.replace("Installed: 0.2.0", "Installed: (none)"))],
)
async def test_check_without_the_package_is_refused(ask: tuple[str, ...]) -> None:
    with pytest.raises(Refused):
        await find_versions(ask)


async def test_apt_is_ended_after_a_timeout() -> None:
    with pytest.raises(Unavailable, match="did not answer"):
        await find_versions(("sleep", "600"), within_s=0.05)
