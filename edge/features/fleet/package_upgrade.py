"""Installs a newer version of the package from its repository, and nothing else."""

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from edge.app.package_versions import PACKAGE, parse_policy
from edge.foundation.errors import Refused
from edge.foundation.text import Text

SOURCES: Final = Path("/etc/apt/sources.list.d/microdcs-edge.sources")
_WITHIN_S: Final = 3000.0
_MOST_OUTPUT: Final = 20_000
_ENVIRONMENT: Final = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
    "DEBIAN_FRONTEND": "noninteractive",
}
_SIGNED_ONLY: Final = (
    "-oAcquire::AllowInsecureRepositories=false",
    "-oAcquire::AllowWeakRepositories=false",
    "-oAcquire::AllowDowngradeToInsecureRepositories=false",
    "-oAPT::Get::AllowUnauthenticated=false",
)
_KEEP_OUR_FILES: Final = ("-oDpkg::Options::=--force-confdef", "-oDpkg::Options::=--force-confold")

Run = Callable[[Sequence[str]], tuple[int, str]]
"""Runs a program; returns its exit status and output."""


def upgrade_package(version: str, run: Run, sources: Path = SOURCES) -> str:
    """Install a version from the repository, "" for its newest one; return what was done. Raises Refused.

    Only the list of that repository is renewed, and the package has to be in it; what it depends on may come from the
    other sources of this machine.
    """
    if not sources.is_file():
        raise Refused(
            "upgrade",
            Text.of("{sources} does not exist", sources=sources),
            "Name the repository there, as the page on installation.",
        )
    only = (f"-oDir::Etc::SourceList={sources}", "-oDir::Etc::SourceParts=/dev/null")
    renew = ("-oAPT::Get::List-Cleanup=0", "-oAPT::Update::Error-Mode=any", *_SIGNED_ONLY)
    _checked(run, "apt-get", "update", *only, *renew)
    package_versions = parse_policy(_checked(run, "apt-cache", "policy", *only, PACKAGE))
    offered = _versions(_checked(run, "apt-cache", "madison", *only, PACKAGE))
    if package_versions is None:
        raise Refused(
            "upgrade", Text.of("apt does not know {package}", package=PACKAGE), "Install it from the repository first."
        )
    target = version or package_versions.candidate
    if target == package_versions.installed:
        return f"{PACKAGE} {target} is installed already"
    if target not in offered:
        raise Refused(
            "upgrade",
            Text.of("the repository has no {package} {target}", package=PACKAGE, target=target),
            Text.of("It has: {offered}", offered=", ".join(offered) or Text.of("none")),
        )
    if run(("dpkg", "--compare-versions", target, "gt", package_versions.installed))[0]:
        raise Refused(
            "upgrade",
            Text.of("{target} is not newer than {installed}", target=target, installed=package_versions.installed),
            "Go back by hand, as the page says.",
        )
    options = ("--yes", "--only-upgrade", "--no-remove", "-oDPkg::Lock::Timeout=600", *_SIGNED_ONLY, *_KEEP_OUR_FILES)
    log = _checked(run, "apt-get", "install", *options, f"{PACKAGE}={target}")
    state = _checked(run, "dpkg-query", "--show", "--showformat=${Version} ${db:Status-Status}", PACKAGE).strip()
    if state != f"{target} installed":
        raise Refused(
            "upgrade",
            Text.of("{package} is now: {state}", package=PACKAGE, state=state),
            "Look at it by hand: sudo apt --fix-broken install",
        )
    return f"{PACKAGE} {target} replaces {package_versions.installed}\n{log}"


def run_program(command: Sequence[str]) -> tuple[int, str]:
    """Run a program of the system in a clean environment; return its exit status and the end of its output."""
    try:
        # The programs are named here; no shell reads the arguments.
        ran = subprocess.run(  # noqa: S603
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_ENVIRONMENT,
            cwd="/",
            check=False,
            timeout=_WITHIN_S,
        )
    except subprocess.TimeoutExpired:
        return 124, f"it did not end within {_WITHIN_S:.0f} s"
    return ran.returncode, ran.stdout.decode(errors="replace")[-_MOST_OUTPUT:]


def _checked(run: Run, *command: str) -> str:
    status, output = run(command)
    if status:
        lines = " / ".join(output.strip().splitlines()[-5:])
        raise Refused("upgrade", f"{command[0]} {command[1]} ended with {status}: {lines}"[-2000:])
    return output


def _versions(text: str) -> list[str]:
    """Return the versions in the output of `apt-cache madison`."""
    return [parts[1].strip() for line in text.splitlines() if len(parts := line.split("|")) > 1]
