"""Adds the management of certificates and trust lists over OPC UA (GDS push, OPC 10000-12)."""

import asyncio
from pathlib import Path

import structlog

from edge.features.opcua_extras.push_methods import PushMethods, PushPlaces
from edge.features.opcua_extras.push_nodes import add_configuration
from edge.opcua.access import AccessPolicy
from edge.opcua.server_transport import ProtocolServer
from edge.uaserver.application_trust import rejected_directory, rejected_users_directory
from edge.uaserver.application_trust_files import finish_update
from edge.uaserver.certificates import OwnCertificate
from edge.uaserver.parts import NewServer
from edge.uaserver.security import serve_certificate

logger = structlog.get_logger(__name__)

CLOSE_AFTER_S = 1.0
"""Channels that are out of date end so long after the change: its answer goes out over one of them."""


def add_push(new: NewServer) -> None:
    """Add the object ServerConfiguration; complete the update of a trust list that a restart has interrupted."""
    server, settings = new.server, new.settings
    pki = Path(settings.pki)
    places = PushPlaces(
        pki,
        Path(settings.trusted),
        Path(settings.trusted_users) if settings.trusted_users else None,
        (rejected_directory(pki), rejected_users_directory(pki)),
    )
    access: AccessPolicy = server.iserver.access

    def serve(changed: OwnCertificate | None) -> None:
        if changed is not None:
            serve_certificate(server, changed)
            logger.info("OPC UA certificate replaced", expires=changed.certificate.not_valid_after_utc.isoformat())
        asyncio.get_running_loop().call_later(CLOSE_AFTER_S, close_outdated, server, access)

    methods = PushMethods(places, new.own, new.uri, access.manages_certificates, serve)
    for file in methods.files.values():
        try:
            finish_update(file.directory)
        except OSError as error:
            logger.warning("trust list update not finished", directory=str(file.directory), reason=str(error))
    add_configuration(server.iserver, methods)


def close_outdated(server: ProtocolServer, access: AccessPolicy) -> None:
    """Close the encrypted channels with a former certificate of the server, or of an application or user without trust.

    The session of a channel ends with it.
    """
    current = server.iserver.certificate
    for client in tuple(server.bserver.clients):
        channel = client.processor.channel if client.processor else None
        if channel is None or not channel.is_encrypted:
            continue
        session = client.processor.session
        caller = session.caller if session else None
        if (
            not channel.uses(current)
            or not access.is_application_trusted(channel.chain, channel.peer.address)
            or (caller is not None and not access.is_login_trusted(caller))
        ):
            client.transport.close()
