"""Adds the management of certificates and trust lists over OPC UA (GDS push, OPC 10000-12)."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import structlog
from asyncua import ua
from asyncua.server.address_space import AddressSpace

from edge.features.opcua_extras.push_methods import (
    APPLICATION_GROUP,
    CERTIFICATE_TYPE,
    CONFIGURATION,
    CONFIGURATION_METHODS,
    TRUST_LIST_METHODS,
    TRUST_LISTS,
    PushMethods,
    PushPlaces,
)
from edge.features.opcua_extras.trust_list_file import ACTIVITY_TIMEOUT_S, MAX_TRUST_LIST_SIZE, TrustListFile
from edge.opcua.access import AccessPolicy
from edge.opcua.server_core import ServerCore
from edge.opcua.server_transport import TcpListener
from edge.uaserver.application_trust import (
    ALL_LISTS,
    encode_lists,
    finish_update,
    read_lists,
    rejected_directory,
    rejected_users_directory,
)
from edge.uaserver.certificates import OwnCertificate
from edge.uaserver.new_nodes import standard_id, standard_item, standard_object, standard_property
from edge.uaserver.node_parts import HAS_COMPONENT
from edge.uaserver.own_types import add_nodes
from edge.uaserver.parts import NewServer
from edge.uaserver.security import serve_certificate

_I: Final = ua.ObjectIds
T: Final = ua.VariantType
_GROUPS: Final = "ServerConfiguration_CertificateGroups"


def add_configuration(core: ServerCore, methods: PushMethods) -> None:
    """Add the nodes below the Server object, and perform their methods."""
    add_nodes(core, _items(core.aspace, methods))
    for group, file in methods.files.items():
        for name, read in _live(file).items():
            node = standard_id(f"{TRUST_LISTS[group]}_{name}")
            core.aspace.set_attribute_value_callback(node, ua.AttributeIds.Value, _reader(read))
    core.method_extensions.append(methods)


def _items(aspace: AddressSpace, methods: PushMethods) -> Iterator[ua.AddNodesItem]:
    root = "ServerConfiguration"
    yield _object(root, ua.NodeId(_I.Server), "ServerConfigurationType")
    yield from (_property(f"{root}_{name}", CONFIGURATION, *value) for name, value in _CONSTANTS.items())
    for name in CONFIGURATION_METHODS:
        yield from _method(aspace, f"{root}_{name}", CONFIGURATION, "ServerConfigurationType")
    yield _object(_GROUPS, CONFIGURATION, "CertificateGroupFolderType")
    for group, file in methods.files.items():
        path = TRUST_LISTS[group]
        name = path.rpartition("_")[0]
        yield _object(name, standard_id(_GROUPS), "CertificateGroupType")
        kinds = [CERTIFICATE_TYPE] if group == APPLICATION_GROUP else []
        yield _property(f"{name}_CertificateTypes", group, kinds, T.NodeId)
        yield _object(path, group, "TrustListType")
        trust_list = standard_id(path)
        for text, value in _live(file).items():
            yield _property(f"{path}_{text}", trust_list, value().Value, value().VariantType)
        yield _property(f"{path}_ActivityTimeout", trust_list, ACTIVITY_TIMEOUT_S * 1000, T.Double, _I.Duration)
        for word in TRUST_LIST_METHODS:
            owner = "TrustListType" if hasattr(_I, f"TrustListType_{word}") else "FileType"
            yield from _method(aspace, f"{path}_{word}", trust_list, owner)


_CONSTANTS: Final[Mapping[str, tuple[Any, ua.VariantType]]] = {
    "ServerCapabilities": ([], T.String),
    "SupportedPrivateKeyFormats": (["PEM"], T.String),
    "MaxTrustListSize": (MAX_TRUST_LIST_SIZE, T.UInt32),
    "MulticastDnsEnabled": (False, T.Boolean),
    "HasSecureElement": (False, T.Boolean),
    "SupportsTransactions": (True, T.Boolean),
}


def _live(file: TrustListFile) -> Mapping[str, Callable[[], ua.Variant]]:
    """Return the properties of a trust list that are read from its files."""
    writable = ua.Variant(file.is_writable, T.Boolean)
    return {
        "Size": lambda: ua.Variant(len(encode_lists(ALL_LISTS, read_lists(file.directory))), T.UInt64),
        "Writable": lambda: writable,
        "UserWritable": lambda: writable,
        "OpenCount": lambda: ua.Variant(file.open_count, T.UInt16),
        "LastUpdateTime": lambda: ua.Variant(_changed_at(file.directory), T.DateTime),
    }


def _changed_at(directory: Path) -> datetime:
    try:
        return datetime.fromtimestamp(directory.stat().st_mtime, UTC)
    except OSError:
        return ua.get_win_epoch()  # it was never updated (OPC 10000-12, 7.8.2)


def _reader(read: Callable[[], ua.Variant]) -> Callable[[ua.NodeId, ua.AttributeIds], ua.DataValue]:
    def value(_node: ua.NodeId, _attribute: ua.AttributeIds) -> ua.DataValue:
        now = datetime.now(UTC)
        return ua.DataValue(read(), SourceTimestamp=now, ServerTimestamp=now)

    return value


def _description(name: str) -> str:
    return _DESCRIPTIONS.get(name.rpartition("_")[2], "Part of the certificate management.")


def _object(name: str, parent: ua.NodeId, type_name: str) -> ua.AddNodesItem:
    return standard_object(name, parent, type_name, _description(name))


def _property(
    name: str, parent: ua.NodeId, value: Any, kind: ua.VariantType, data_type: int | None = None
) -> ua.AddNodesItem:
    held = ua.Variant(value, kind, is_array=isinstance(value, list))
    return standard_property(name, parent, held, _description(name), data_type)


def _method(aspace: AddressSpace, name: str, parent: ua.NodeId, owner: str) -> Iterator[ua.AddNodesItem]:
    """Yield the nodes of a method; its arguments are those of the type."""
    attributes = ua.MethodAttributes()
    attributes.Executable = True
    attributes.UserExecutable = False
    yield standard_item(name, parent, HAS_COMPONENT, ua.NodeClass.Method, attributes, _description(name))
    for arguments in ("InputArguments", "OutputArguments"):
        of_type = getattr(_I, f"{owner}_{name.rpartition('_')[2]}_{arguments}", None)
        if of_type is None:
            continue
        value = aspace.read_attribute_value(ua.NodeId(of_type), ua.AttributeIds.Value).Value.Value
        yield _property(f"{name}_{arguments}", standard_id(name), list(value), T.ExtensionObject, _I.Argument)


_DESCRIPTIONS: Final[Mapping[str, str]] = {
    "ServerConfiguration": "Certificates and trust lists of this server.",
    "TrustList": "The certificates that this server trusts.",
    "DefaultApplicationGroup": "The certificate of this server, and the applications that it trusts.",
    "DefaultUserTokenGroup": "The users that this server trusts.",
    "Writable": "Whether the gateway may write the files of the list.",
    "LastUpdateTime": "When the files of the list were changed last.",
}


logger = structlog.get_logger(__name__)

CLOSE_AFTER_S = 1.0
"""Channels that are out of date end so long after the change: its answer goes out over one of them."""


def add_push(new: NewServer) -> None:
    """Add the object ServerConfiguration; complete the update of a trust list that a restart has interrupted."""
    core, settings = new.core, new.settings
    pki = Path(settings.pki)
    places = PushPlaces(
        pki,
        Path(settings.trusted),
        Path(settings.trusted_users) if settings.trusted_users else None,
        (rejected_directory(pki), rejected_users_directory(pki)),
    )
    access: AccessPolicy = core.access

    def serve(changed: OwnCertificate | None) -> None:
        if changed is not None:
            serve_certificate(core, changed)
            logger.info("OPC UA certificate replaced", expires=changed.certificate.not_valid_after_utc.isoformat())
        asyncio.get_running_loop().call_later(CLOSE_AFTER_S, close_outdated, new.listener, access)

    methods = PushMethods(places, new.own, new.uri, access.manages_certificates, serve)
    for file in methods.files.values():
        try:
            finish_update(file.directory)
        except OSError as error:
            logger.warning("trust list update not finished", directory=str(file.directory), reason=str(error))
    add_configuration(core, methods)


def close_outdated(listener: TcpListener, access: AccessPolicy) -> None:
    """Close the encrypted channels with a former certificate of the server, or of an application or user without trust.

    The session of a channel ends with it.
    """
    current = listener.core.certificate
    for client in tuple(listener.clients):
        channel = client.processor.channel
        if not channel.is_encrypted:
            continue
        session = client.processor.session
        caller = session.caller if session else None
        if (
            not channel.uses(current)
            or not access.is_application_trusted(channel.chain, channel.peer.address)
            or (caller is not None and not access.is_login_trusted(caller))
        ):
            client.transport.close()
