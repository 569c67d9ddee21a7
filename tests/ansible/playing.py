"""Plays the roles against machines that boot in containers and have no network but the one to us."""

import asyncio
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from tests.system.machine import Machine

ROOT = Path(__file__).parents[2]
SUITE = os.environ.get("SUITE", "trixie")
RELEASE = {"bookworm": 12, "trixie": 13}[SUITE]
_CONNECTION = Path(__file__).with_name("connection")


def make_repository(shared: Path) -> None:
    """Make a folder with a signed repository of the package in dist/."""
    shared.mkdir(parents=True)
    for package in (ROOT / "dist").glob(f"microdcs-edge_*+deb{RELEASE}u*_amd64.deb"):
        shutil.copy(package, shared)
    subprocess.run([ROOT / ".ci/repo", shared], check=True, stdout=subprocess.DEVNULL)


def boot_archive() -> Path:
    """Return the archive of a root as Debian makes it."""
    made = subprocess.run([ROOT / ".ci/root", "boot", SUITE], check=True, capture_output=True, text=True)
    return ROOT / made.stdout.strip()


def keep_packages(root: Path, packages: str) -> None:
    """Fetch packages of Debian, and make them the only Debian that the machine knows."""
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    quietly = "apt-get -qq --yes"
    fetch = f"{quietly} update; {quietly} --download-only install {packages}"
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["chroot", root, "sh", "-ec", fetch], check=True, env=environment, stdout=subprocess.DEVNULL)
    (root / "etc/resolv.conf").write_text("")
    path = root / "srv/debian"
    shutil.copytree(root / "var/cache/apt/archives", path, ignore=shutil.ignore_patterns("partial", "lock"))
    listed = subprocess.run(["apt-ftparchive", "packages", "."], cwd=path, check=True, capture_output=True)
    (path / "Packages").write_bytes(listed.stdout)
    for source in (root / "etc/apt").glob("sources.list*"):
        shutil.rmtree(source) if source.is_dir() else source.unlink()
    (root / "etc/apt/sources.list.d").mkdir()
    (root / "etc/apt/sources.list").write_text("deb [trusted=yes] file:///srv/debian ./\n")
    subprocess.run(["chroot", root, "apt-get", "-qq", "update"], check=True, env=environment)


def connection(machine: Machine, folder: Path) -> dict[str, object]:
    """Return the variables of a host that lead Ansible into a booted machine."""
    file = folder / f"connection-{machine.root.parent.name}"
    init = machine._init  # noqa: SLF001 - the connection enters there
    file.write_text(f'#!/bin/sh\nMACHINE_INIT={init} exec {_CONNECTION} "$@"\n')
    file.chmod(0o755)
    # We come as root; a bare Debian has no sudo.
    return {"ansible_ssh_executable": str(file), "ansible_become": False}


async def play_book(book: str, inventory: object, folder: Path, *options: str) -> tuple[str, dict[str, dict[str, int]]]:
    """Play a book; return what it printed, and the number of tasks of each host by their result."""
    (folder / "hosts.yml").write_text(json.dumps(inventory))
    environment = os.environ | {
        "ANSIBLE_SSH_TRANSFER_METHOD": "piped",
        "ANSIBLE_PYTHON_INTERPRETER": "/usr/bin/python3",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_PIPELINING": "1",
    }
    process = await asyncio.create_subprocess_exec(
        *(f"{ROOT}/build/ansible/bin/ansible-playbook", f"--inventory={folder}/hosts.yml"),
        *(str(ROOT / "ansible" / book), *options),
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed = (await process.communicate())[0].decode()
    assert process.returncode == 0, printed
    print(printed)  # noqa: T201 - shown when a test fails
    lines = printed.rpartition("PLAY RECAP")[2].splitlines()
    return printed, {
        line.split(":")[0].strip(): {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", line)}
        for line in lines
        if "=" in line
    }
