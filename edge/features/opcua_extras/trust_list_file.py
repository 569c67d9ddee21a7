"""The TrustList object: a file that is opened, read, written and closed by methods (OPC 10000-12, 7.8.2)."""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from asyncua import ua
from asyncua.common.utils import ServiceError
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding
from msgspec import Struct

from edge.uaserver.application_trust import (
    ALL_LISTS,
    InvalidTrustList,
    TrustLists,
    decode_lists,
    encode_lists,
    is_signed_by,
    may_sign,
    read_lists,
    replace_lists,
)
from edge.uaserver.certificates import thumbprint

_S: Final = ua.StatusCodes
MAX_TRUST_LIST_SIZE: Final = 1 << 20
"""Bytes of a trust list that a client may write: some thousand certificates."""
ACTIVITY_TIMEOUT_S: Final = 60.0
"""A handle without any call for so long makes way for another client."""

_MOST_READERS: Final = 10
_LAST_HANDLE: Final = (1 << 32) - 1


class _Handle(Struct):
    """An open file: the session that opened it, its content, and the position."""

    session: object
    content: bytearray
    is_writer: bool
    used_at: float
    position: int = 0


class TrustListFile:
    """The trust list of a directory as a file; each method raises ServiceError with the status of its refusal."""

    def __init__(self, directory: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.directory = directory
        self._clock = clock
        self._handles: dict[int, _Handle] = {}
        self._next = 1
        self._changing = asyncio.Lock()

    @property
    def is_writable(self) -> bool:
        """Whether this process may change the files."""
        place = self.directory if self.directory.exists() else self.directory.parent
        return os.access(place, os.W_OK)

    @property
    def open_count(self) -> int:
        """The number of open handles."""
        return len(self._handles)

    def forget(self, is_closed: Callable[[object], bool]) -> None:
        """Close the handles of sessions that have ended, and those that were idle for a minute."""
        now = self._clock()
        gone = [
            number
            for number, handle in self._handles.items()
            if is_closed(handle.session) or now - handle.used_at > ACTIVITY_TIMEOUT_S
        ]
        for number in gone:
            del self._handles[number]

    async def open(self, session: object, mode: int) -> int:
        """Open for reading (1) or for writing a whole new list (6); return the handle."""
        match mode:
            case 1:
                return await self.open_with_masks(session, ALL_LISTS)
            case 6:
                if self._handles:
                    raise ServiceError(_S.BadNotWritable)
                return self._opened(session, b"", is_writer=True)
            case _:
                raise ServiceError(_S.BadInvalidArgument)

    async def open_with_masks(self, session: object, masks: int) -> int:
        """Open some of the lists for reading; return the handle."""
        if masks > ALL_LISTS:
            raise ServiceError(_S.BadInvalidArgument)
        self._require_no_writer(_S.BadNotReadable)
        lists = await asyncio.to_thread(read_lists, self.directory)
        self._require_no_writer(_S.BadNotReadable)
        if len(self._handles) >= _MOST_READERS:
            raise ServiceError(_S.BadTooManyOperations)
        return self._opened(session, encode_lists(masks, lists.masked(masks)), is_writer=False)

    def read(self, session: object, handle: int, length: int) -> bytes:
        """Return the next bytes; fewer at the end."""
        found = self._handle(session, handle)
        if found.is_writer:
            raise ServiceError(_S.BadInvalidState)
        if length < 0:
            raise ServiceError(_S.BadInvalidArgument)
        data = bytes(found.content[found.position : found.position + length])
        found.position += len(data)
        return data

    def write(self, session: object, handle: int, data: bytes) -> None:
        """Write bytes at the position."""
        found = self._handle(session, handle)
        if not found.is_writer:
            raise ServiceError(_S.BadInvalidState)
        if found.position + len(data) > MAX_TRUST_LIST_SIZE:
            raise ServiceError(_S.BadEncodingLimitsExceeded)
        found.content[found.position : found.position + len(data)] = data
        found.position += len(data)

    def position(self, session: object, handle: int) -> int:
        """Return the position."""
        return self._handle(session, handle).position

    def set_position(self, session: object, handle: int, position: int) -> None:
        """Set the position; beyond the end it is the end."""
        found = self._handle(session, handle)
        found.position = min(position, len(found.content))

    def close(self, session: object, handle: int) -> None:
        """Close; what was written is discarded."""
        self._handle(session, handle)
        del self._handles[handle]

    async def close_and_update(self, session: object, handle: int) -> None:
        """Close, and replace the lists that were written."""
        found = self._handle(session, handle)
        if not found.is_writer:
            raise ServiceError(_S.BadInvalidState)
        del self._handles[handle]
        async with self._changing:
            await asyncio.to_thread(self._update, bytes(found.content))

    async def add(self, data: bytes, *, is_trusted: bool) -> None:
        """Add the certificate of an application or a user to the trusted ones (OPC 10000-12, 7.8.2.6).

        Authorities come with their revocation lists by writing the file.
        """
        self._require_closed()
        try:
            certificate = x509.load_der_x509_certificate(data)
            certificate.public_key()
        except (ValueError, UnsupportedAlgorithm) as error:
            raise ServiceError(_S.BadCertificateInvalid) from error
        if not is_trusted or may_sign(certificate):
            raise ServiceError(_S.BadCertificateInvalid)
        der = certificate.public_bytes(Encoding.DER)
        async with self._changing:
            await asyncio.to_thread(self._add, certificate, der)

    async def remove(self, wanted: str, *, is_trusted: bool) -> None:
        """Remove the certificate with this thumbprint, and the revocation lists of an authority."""
        self._require_closed()
        async with self._changing:
            await asyncio.to_thread(self._remove, wanted.replace(" ", "").upper(), is_trusted=is_trusted)

    def _update(self, content: bytes) -> None:
        try:
            masks, trust_lists = decode_lists(content)
        except InvalidTrustList as error:
            raise ServiceError(_S.BadCertificateInvalid) from error
        self._replace(read_lists(self.directory).updated(masks, trust_lists))

    def _add(self, certificate: x509.Certificate, der: bytes) -> None:
        lists = read_lists(self.directory)
        subjects = {x509.load_der_x509_certificate(one).subject for one in (*lists.trusted, *lists.issuers)}
        if certificate.issuer not in {certificate.subject, *subjects}:
            raise ServiceError(_S.BadCertificateChainIncomplete)
        new = TrustLists((*lists.trusted, der), lists.trusted_crls, lists.issuers, lists.issuer_crls)
        if len(encode_lists(ALL_LISTS, new)) > MAX_TRUST_LIST_SIZE:
            raise ServiceError(_S.BadEncodingLimitsExceeded)
        self._replace(new)

    def _remove(self, wanted: str, *, is_trusted: bool) -> None:
        trust_lists = read_lists(self.directory)
        certificates, revocations = trust_lists.lists[:2] if is_trusted else trust_lists.lists[2:]
        gone = [x509.load_der_x509_certificate(certificate) for certificate in certificates]
        gone = [certificate for certificate in gone if thumbprint(certificate) == wanted]
        if not gone:
            raise ServiceError(_S.BadInvalidArgument)
        removed = {certificate.public_bytes(Encoding.DER) for certificate in gone}
        left = tuple(certificate for certificate in certificates if certificate not in removed)
        lists = tuple(revocation for revocation in revocations if not _is_of(revocation, gone))
        self._replace(
            TrustLists(left, lists, trust_lists.issuers, trust_lists.issuer_crls)
            if is_trusted
            else TrustLists(trust_lists.trusted, trust_lists.trusted_crls, left, lists)
        )

    def _replace(self, lists: TrustLists) -> None:
        try:
            replace_lists(self.directory, lists)
        except OSError as error:
            raise ServiceError(_S.BadNotWritable) from error

    def _opened(self, session: object, content: bytes, *, is_writer: bool) -> int:
        handle, self._next = self._next, self._next % _LAST_HANDLE + 1
        self._handles[handle] = _Handle(session, bytearray(content), is_writer, self._clock())
        return handle

    def _handle(self, session: object, handle: int) -> _Handle:
        found = self._handles.get(handle)
        if found is None or found.session is not session:
            raise ServiceError(_S.BadInvalidArgument)
        found.used_at = self._clock()
        return found

    def _require_no_writer(self, status: int) -> None:
        if any(handle.is_writer for handle in self._handles.values()):
            raise ServiceError(status)

    def _require_closed(self) -> None:
        if self._handles:
            raise ServiceError(_S.BadInvalidState)


def _is_of(revocations: bytes, authorities: list[x509.Certificate]) -> bool:
    found = x509.load_der_x509_crl(revocations)
    return any(found.issuer == authority.subject and is_signed_by(found, authority) for authority in authorities)
