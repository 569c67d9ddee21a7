"""The machine, the plant around it and the packages for the tests of an installed gateway."""

import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
import pytest_asyncio

from edge.config import MqttSettings
from tests.integration.plant import Plant, opened_plant
from tests.system.machine import Machine

ROOT = Path(__file__).parents[2]
SUITE = os.environ.get("SUITE", "trixie")
PREFIX = "line"


@pytest.fixture(scope="session")
def versions() -> tuple[str, str]:
    """The version of the package that `make deb` made, and that of the next one, made here of the same bytes."""
    (package,) = (ROOT / "dist").glob(f"microdcs-edge_*+deb{ {'bookworm': 12, 'trixie': 13}[SUITE] }u*_amd64.deb")
    version = package.name.split("_")[1]
    major, minor, patch, suite = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)(\+.*)", version).groups()  # type: ignore[union-attr]
    return version, f"{major}.{minor}.{int(patch) + 1}{suite}"


@pytest.fixture(scope="session")
def repository(versions: tuple[str, str]) -> Path:
    """A signed repository that holds both versions."""
    folder = ROOT / "build" / "system" / SUITE
    shutil.rmtree(folder, ignore_errors=True)
    unpacked = folder / "next"
    folder.mkdir(parents=True)
    now, later = versions
    package = ROOT / "dist" / f"microdcs-edge_{now}_amd64.deb"
    shutil.copy(package, folder)
    subprocess.run(["dpkg-deb", "--raw-extract", package, unpacked], check=True)
    code = unpacked / "usr/lib/microdcs-edge/edge"
    for file in (unpacked / "DEBIAN/control", code / "__init__.py"):
        _replace_in(file, {now: later, now.split("+")[0]: later.split("+")[0]})
    # Its types were prepared under the first version; without them each start imports the node sets, which takes long.
    _replace_in(code / "uaserver/nodesets.py", {"(edge.__version__, asyncua": f'("{now.split("+")[0]}", asyncua'})
    # Quickly packed, not tightly.
    subprocess.run(["dpkg-deb", "-Zgzip", "-z1", "--build", unpacked, folder], check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(unpacked)
    subprocess.run([ROOT / ".ci/repo", folder], check=True, stdout=subprocess.DEVNULL)
    return folder / "repo"


def _replace_in(file: Path, texts: Mapping[str, str]) -> None:
    content = file.read_text(encoding="utf-8")
    assert any(text in content for text in texts), file
    for text, other in texts.items():
        content = content.replace(text, other)
    file.write_text(content, encoding="utf-8")


@pytest.fixture(scope="session")
def archive() -> Path:
    """A root as Debian makes it."""
    made = subprocess.run([ROOT / ".ci/root", "boot", SUITE], check=True, capture_output=True, text=True)
    return ROOT / made.stdout.strip()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def machine(archive: Path, repository: Path) -> AsyncIterator[Machine]:
    """A machine that knows the repository; the broker it is to have lets the plant in."""
    machine = Machine.unpack(archive, ROOT / "build" / "system" / SUITE / "root", repository)
    broker = machine.root / "etc/mosquitto/conf.d/plant.conf"
    broker.parent.mkdir(parents=True)
    broker.write_text("listener 1883\nallow_anonymous true\n")
    source = machine.root / "etc/apt/sources.list.d/microdcs-edge.sources"
    source.write_text(
        f"Types: deb\nURIs: file:///shared\nSuites: {SUITE}\nComponents: main\nSigned-By: /shared/microdcs-edge.asc\n"
    )
    try:
        await machine.boot()
        yield machine
    finally:
        await machine.cut_power()
        machine.remove()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def plant(machine: Machine) -> AsyncIterator[Plant]:
    """MES and equipment outside of the machine, at its broker."""
    async with opened_plant(MqttSettings(url=f"mqtt://{machine.address}:1883"), PREFIX) as plant:
        yield plant
