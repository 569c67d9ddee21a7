"""The methods of ServerConfiguration: certificates and trust lists by push (OPC 10000-12, 7.10)."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import structlog
from asyncua import ua
from asyncua.common.utils import ServiceError
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding
from msgspec import Struct

from edge.features.opcua_extras.trust_list_file import TrustListFile
from edge.opcua.access import CALLER, Caller
from edge.opcua.application_certificate import certificate_files
from edge.opcua.server_session import ServerSession
from edge.uaserver import certificates
from edge.uaserver.certificates import (
    OwnCertificate,
    UnusableCertificate,
    check_issued,
    read_key,
    read_subject,
    signing_request,
)

logger = structlog.get_logger(__name__)

_I: Final = ua.ObjectIds
_S: Final = ua.StatusCodes
T: Final = ua.VariantType
CONFIGURATION: Final = ua.NodeId(_I.ServerConfiguration)
APPLICATION_GROUP: Final = ua.NodeId(_I.ServerConfiguration_CertificateGroups_DefaultApplicationGroup)
USER_GROUP: Final = ua.NodeId(_I.ServerConfiguration_CertificateGroups_DefaultUserTokenGroup)
CERTIFICATE_TYPE: Final = ua.NodeId(_I.RsaSha256ApplicationCertificateType)
TRUST_LISTS: Final[Mapping[ua.NodeId, str]] = MappingProxyType(
    {
        group: f"ServerConfiguration_CertificateGroups_{name}_TrustList"
        for group, name in ((APPLICATION_GROUP, "DefaultApplicationGroup"), (USER_GROUP, "DefaultUserTokenGroup"))
    }
)
"""The groups, each with the name of its TrustList among the ids of namespace 0."""
_NONCE_BYTES: Final = 32
_MOST_ISSUERS: Final = 4
_MOST_REJECTED: Final = 100

_Kind = tuple[ua.VariantType, bool]
_ONE_UINT32: Final[tuple[_Kind, ...]] = ((T.UInt32, False),)
CONFIGURATION_METHODS: Final[Mapping[str, tuple[_Kind, ...]]] = MappingProxyType(
    {
        "UpdateCertificate": (
            (T.NodeId, False),
            (T.NodeId, False),
            (T.ByteString, False),
            (T.ByteString, True),
            (T.String, False),
            (T.ByteString, False),
        ),
        "CreateSigningRequest": (
            (T.NodeId, False),
            (T.NodeId, False),
            (T.String, False),
            (T.Boolean, False),
            (T.ByteString, False),
        ),
        "ApplyChanges": (),
        "CancelChanges": (),
        "GetRejectedList": (),
        "GetCertificates": ((T.NodeId, False),),
    }
)
TRUST_LIST_METHODS: Final[Mapping[str, tuple[_Kind, ...]]] = MappingProxyType(
    {
        "Open": ((T.Byte, False),),
        "OpenWithMasks": _ONE_UINT32,
        "Read": ((T.UInt32, False), (T.Int32, False)),
        "Write": ((T.UInt32, False), (T.ByteString, False)),
        "GetPosition": _ONE_UINT32,
        "SetPosition": ((T.UInt32, False), (T.UInt64, False)),
        "Close": _ONE_UINT32,
        "CloseAndUpdate": _ONE_UINT32,
        "AddCertificate": ((T.ByteString, False), (T.Boolean, False)),
        "RemoveCertificate": ((T.String, False), (T.Boolean, False)),
    }
)
"""The methods with the types of their arguments, and whether each is an array."""


class PushPlaces(Struct, frozen=True):
    """The files that the methods change."""

    pki: Path
    trusted: Path
    trusted_users: Path | None
    rejected: Sequence[Path]


class _Transaction(Struct):
    """A certificate that waits for ApplyChanges, and the session that sent it."""

    session: ServerSession
    own: OwnCertificate


class PushMethods:
    """Performs the methods for the security administrators; every refusal is a status."""

    def __init__(
        self,
        places: PushPlaces,
        own: OwnCertificate,
        application_uri: str,
        is_admin: Callable[[Caller], bool],
        serve: Callable[[OwnCertificate | None], None],
    ) -> None:
        """Serve `own` until a new certificate is applied.

        `serve` is called with a new certificate, and with None when a trust list has changed.
        """
        self.files = {APPLICATION_GROUP: TrustListFile(places.trusted)}
        if places.trusted_users is not None:
            self.files[USER_GROUP] = TrustListFile(places.trusted_users)
        self.own = own
        self._places = places
        self._application_uri = application_uri
        self._is_admin = is_admin
        self._serve = serve
        self._requested: rsa.RSAPrivateKey | None = None
        self._transaction: _Transaction | None = None
        self._methods = dict(_method_ids(self.files))

    def serves(self, request: ua.CallMethodRequest) -> bool:
        """Return whether the call is for ServerConfiguration or a trust list."""
        return (request.ObjectId, request.MethodId) in self._methods

    async def call(self, request: ua.CallMethodRequest, session: ServerSession) -> ua.CallMethodResult:
        """Perform a method."""
        group, name, signature = self._methods[request.ObjectId, request.MethodId]
        if not session.connection.channel.is_encrypted:
            return _result(_S.BadSecurityModeInsufficient)
        if not self._is_admin(CALLER.get()):
            return _result(_S.BadUserAccessDenied)
        arguments = _read_arguments(signature, request.InputArguments or ())
        if isinstance(arguments, ua.CallMethodResult):
            return arguments
        try:
            if group is None:
                outputs = await self._configure(name, session, arguments)
            else:
                outputs = await self._change_list(self.files[group], name, session, arguments)
        except ServiceError as error:
            return _result(int(error.code))
        except OSError as error:
            logger.warning("certificate files not written", reason=str(error))
            return _result(_S.BadResourceUnavailable)
        return ua.CallMethodResult(OutputArguments=outputs)

    async def _configure(self, name: str, session: ServerSession, arguments: Sequence[Any]) -> list[ua.Variant]:
        match name:
            case "UpdateCertificate":
                return await self._update(session, *arguments)
            case "CreateSigningRequest":
                return await self._request(*arguments)
            case "ApplyChanges":
                return await self._apply(session)
            case "CancelChanges":
                self._open_transaction(session)
                self._transaction = None
                return []
            case "GetRejectedList":
                found = await asyncio.to_thread(_certificates, self._places.rejected)
                return [ua.Variant(found, T.ByteString, is_array=True)]
            case _:
                _require_group(arguments[0], CERTIFICATE_TYPE)
                der = self.own.certificate.public_bytes(Encoding.DER)
                kinds = ua.Variant([CERTIFICATE_TYPE], T.NodeId, is_array=True)
                return [kinds, ua.Variant([der], T.ByteString, is_array=True)]

    async def _update(
        self,
        session: ServerSession,
        group: ua.NodeId,
        kind: ua.NodeId,
        data: bytes,
        issuers: Sequence[bytes],
        key_format: str,
        key: bytes,
    ) -> list[ua.Variant]:
        _require_group(group, kind)
        other = self._transaction
        if other is not None and other.session is not session and not other.session.is_closed:
            raise ServiceError(_S.BadTransactionPending)
        if key_format not in {"", "PEM"}:
            raise ServiceError(_S.BadNotSupported)
        if bool(key_format) != bool(key) or len(issuers) > _MOST_ISSUERS:
            raise ServiceError(_S.BadInvalidArgument)
        certificate, *above = (_certificate(issuer) for issuer in (data, *issuers))
        try:
            keys = (
                [read_key(key)]
                if key
                else [rsa_private_key for rsa_private_key in (self._requested, self.own.key) if rsa_private_key]
            )
            own = check_issued(certificate, above, keys, self._application_uri, datetime.now(UTC))
        except UnusableCertificate as error:
            logger.warning("pushed certificate refused", reason=str(error), by=CALLER.get().name)
            raise ServiceError(_S.BadSecurityChecksFailed) from error
        self._transaction = _Transaction(session, own)
        return [ua.Variant(True, T.Boolean)]

    async def _request(
        self,
        group: ua.NodeId,
        kind: ua.NodeId,
        subject: str,
        regenerate: bool,  # noqa: FBT001 - an argument of the method
        nonce: bytes,
    ) -> list[ua.Variant]:
        _require_group(group, kind)
        if regenerate and len(nonce) < _NONCE_BYTES:
            raise ServiceError(_S.BadInvalidArgument)
        try:
            name = read_subject(subject)
        except (ValueError, KeyError) as error:
            raise ServiceError(_S.BadInvalidArgument) from error
        if regenerate:
            # The new key is used when its certificate comes; a restart before that forgets it.
            self._requested = await asyncio.to_thread(certificates.generate_key)
        key = self._requested if regenerate and self._requested else self.own.key
        return [ua.Variant(signing_request(self.own, key, name), T.ByteString)]

    async def _apply(self, session: ServerSession) -> list[ua.Variant]:
        transaction = self._open_transaction(session)
        await asyncio.to_thread(certificates.store, self._places.pki, transaction.own)
        self._transaction, self._requested, self.own = None, None, transaction.own
        self._serve(transaction.own)
        return []

    def _open_transaction(self, session: ServerSession) -> _Transaction:
        transaction = self._transaction
        if transaction is None or transaction.session.is_closed:
            raise ServiceError(_S.BadNothingToDo)
        if transaction.session is not session:
            raise ServiceError(_S.BadSessionIdInvalid)
        return transaction

    async def _change_list(
        self, file: TrustListFile, name: str, session: ServerSession, arguments: Sequence[Any]
    ) -> list[ua.Variant]:
        file.forget(_is_closed)
        match name:
            case "Open":
                return [ua.Variant(await file.open(session, *arguments), T.UInt32)]
            case "OpenWithMasks":
                return [ua.Variant(await file.open_with_masks(session, *arguments), T.UInt32)]
            case "Read":
                return [ua.Variant(file.read(session, *arguments), T.ByteString)]
            case "Write":
                file.write(session, *arguments)
            case "GetPosition":
                return [ua.Variant(file.position(session, *arguments), T.UInt64)]
            case "SetPosition":
                file.set_position(session, *arguments)
            case "Close":
                file.close(session, *arguments)
            case "CloseAndUpdate":
                await file.close_and_update(session, *arguments)
                self._serve(None)
                return [ua.Variant(False, T.Boolean)]
            case "AddCertificate":
                await file.add(arguments[0], is_trusted=arguments[1])
            case _:
                await file.remove(arguments[0], is_trusted=arguments[1])
                self._serve(None)
        return []


_Method = tuple[ua.NodeId | None, str, tuple[_Kind, ...]]


def _method_ids(groups: Iterable[ua.NodeId]) -> Iterator[tuple[tuple[ua.NodeId, ua.NodeId], _Method]]:
    """Yield each object and method, by the id of the instance and by that of the type."""
    for name, signature in CONFIGURATION_METHODS.items():
        for owner in ("ServerConfiguration", "ServerConfigurationType"):
            yield (CONFIGURATION, ua.NodeId(getattr(_I, f"{owner}_{name}"))), (None, name, signature)
    for group in groups:
        path = TRUST_LISTS[group]
        for name, signature in TRUST_LIST_METHODS.items():
            for owner in (path, "TrustListType", "FileType"):
                if (method := getattr(_I, f"{owner}_{name}", None)) is not None:
                    yield (ua.NodeId(getattr(_I, path)), ua.NodeId(method)), (group, name, signature)


def _is_closed(session: object) -> bool:
    return isinstance(session, ServerSession) and session.is_closed


def _require_group(group: ua.NodeId, kind: ua.NodeId) -> None:
    """Raise ServiceError for another group than that of applications; null stands for it."""
    if group not in {APPLICATION_GROUP, ua.NodeId()} or kind not in {CERTIFICATE_TYPE, ua.NodeId()}:
        raise ServiceError(_S.BadInvalidArgument)


def _certificate(data: bytes) -> x509.Certificate:
    try:
        certificate = x509.load_der_x509_certificate(data)
        certificate.public_key()
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ServiceError(_S.BadCertificateInvalid) from error
    return certificate


def _certificates(directories: Sequence[Path]) -> list[bytes]:
    found = [file.certificate for directory in directories for file in certificate_files(directory)]
    return [certificate.public_bytes(Encoding.DER) for certificate in found[:_MOST_REJECTED]]


def _read_arguments(signature: Sequence[_Kind], given: Sequence[ua.Variant]) -> list[Any] | ua.CallMethodResult:
    """Read the arguments, null as an empty value; return the Bad result for invalid ones."""
    if len(given) != len(signature):
        return _result(_S.BadArgumentsMissing if len(given) < len(signature) else _S.BadTooManyArguments)
    read, verdicts = [], []
    for (kind, is_array), argument in zip(signature, given, strict=True):
        value = argument.Value
        is_null = argument.VariantType is T.Null and (is_array or kind in _EMPTY)
        is_right = is_null or (argument.VariantType is kind and argument.is_array == is_array)
        verdicts.append(_S.Good if is_right else _S.BadTypeMismatch)
        if is_array:
            read.append([item or b"" for item in value or ()] if is_right else [])
        else:
            read.append(_EMPTY.get(kind, value) if value is None else value)
    if not any(verdicts):
        return read
    return ua.CallMethodResult(
        StatusCode=ua.StatusCode(_S.BadInvalidArgument),
        InputArgumentResults=[ua.StatusCode(verdict) for verdict in verdicts],
    )


_EMPTY: Final[Mapping[ua.VariantType, Any]] = MappingProxyType({T.ByteString: b"", T.String: "", T.NodeId: ua.NodeId()})


def _result(status: int) -> ua.CallMethodResult:
    return ua.CallMethodResult(StatusCode=ua.StatusCode(status))
