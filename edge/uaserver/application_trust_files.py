"""The files of a trust list as one value: read, replaced as a whole, and encoded as TrustListDataType."""

import hashlib
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import structlog
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding
from msgspec import Struct

from edge.foundation.files import make_directory, write_atomically
from edge.opcua.application_certificate import SUFFIXES, certificate_files, read_certificate
from edge.uaserver.application_trust import issuers_directory, revocation_files
from edge.uaserver.certificates import thumbprint

logger = structlog.get_logger(__name__)

_JOURNAL = ".update"
"""A complete new list, written before the first file of it: an interrupted update is finished from it."""
_OPEN_DIRECTORY, _OPEN_FILE = 0o755, 0o644
_COUNT = struct.Struct("<i")
_MASKS = struct.Struct("<I")


class InvalidTrustList(Exception):
    """The bytes is not trust list, or one of its certificates or revocation lists is damaged."""


class TrustLists(Struct, frozen=True):
    """The four lists of a trust list, each a tuple of DER."""

    trusted: tuple[bytes, ...] = ()
    trusted_crls: tuple[bytes, ...] = ()
    issuers: tuple[bytes, ...] = ()
    issuer_crls: tuple[bytes, ...] = ()

    @property
    def lists(self) -> tuple[tuple[bytes, ...], ...]:
        """The lists in the order of their mask bits (OPC 10000-12, 7.8.2.7)."""
        return self.trusted, self.trusted_crls, self.issuers, self.issuer_crls

    def masked(self, masks: int) -> "TrustLists":
        """Return the lists of these mask bits; the others are empty."""
        return TrustLists(*(row if masks & 1 << bit else () for bit, row in enumerate(self.lists)))

    def updated(self, masks: int, others: "TrustLists") -> "TrustLists":
        """Return these lists, with those of the mask bits replaced by others."""
        pairs = zip(self.lists, others.lists, strict=True)
        return TrustLists(*(new if masks & 1 << bit else old for bit, (old, new) in enumerate(pairs)))


ALL_LISTS = 15


def read_lists(directory: Path) -> TrustLists:
    """Read the trust list of a directory. Raises OSError."""
    found = []
    for path in (directory, issuers_directory(directory)):
        certificates = (entry.certificate.public_bytes(Encoding.DER) for entry in certificate_files(path))
        revocations = (entry.public_bytes(Encoding.DER) for _, entry in revocation_files(path))
        found += [tuple(dict.fromkeys(certificates)), tuple(dict.fromkeys(revocations))]
    return TrustLists(*found)


def replace_lists(directory: Path, lists: TrustLists) -> None:
    """Replace the trust list of a directory; after a power cut it is the old or the new one. Raises OSError.

    `finish_update` completes what was interrupted.
    """
    make_directory(directory, _OPEN_DIRECTORY)
    write_atomically(directory / _JOURNAL, encode_lists(ALL_LISTS, lists), _OPEN_FILE)
    finish_update(directory)


def finish_update(directory: Path) -> None:
    """Complete an update that was interrupted, if there is one. Raises OSError."""
    journal = directory / _JOURNAL
    try:
        _, lists = decode_lists(journal.read_bytes())
    except FileNotFoundError:
        return
    except InvalidTrustList as error:
        logger.warning("trust list update unusable", file=str(journal), reason=str(error))
        journal.unlink()
        return
    # All files are written before the first one is removed: a client that connects meanwhile meets no gap.
    issuers = issuers_directory(directory)
    _add(directory, lists.trusted, lists.trusted_crls)
    _add(issuers, lists.issuers, lists.issuer_crls)
    _remove(directory, {*lists.trusted, *lists.trusted_crls})
    _remove(issuers, {*lists.issuers, *lists.issuer_crls})
    journal.unlink()


def encode_lists(masks: int, lists: TrustLists) -> bytes:
    """Encode lists as TrustListDataType."""
    parts = [_MASKS.pack(masks)]
    for pair in lists.lists:
        parts.append(_COUNT.pack(len(pair)))
        parts += [_COUNT.pack(len(entry)) + entry for entry in pair]
    return b"".join(parts)


def decode_lists(data: bytes) -> tuple[int, TrustLists]:
    """Decode and check a TrustListDataType; return its masks and its lists. Raises InvalidTrustList."""
    try:
        (masks,) = _MASKS.unpack_from(data)
        at, found = _MASKS.size, []
        for _ in range(4):
            (count,) = _COUNT.unpack_from(data, at)
            at += _COUNT.size
            entries = []
            for _ in range(max(count, 0)):
                (size,) = _COUNT.unpack_from(data, at)
                at += _COUNT.size
                entries.append(data[at : at + size])
                at += size
                if size < 0 or at > len(data):
                    raise InvalidTrustList("an entry is longer than the list")
            found.append(tuple(dict.fromkeys(entries)))
    except struct.error as error:
        raise InvalidTrustList("it ends too early") from error
    if at != len(data) or masks > ALL_LISTS:
        raise InvalidTrustList("it is longer than its content, or has unknown masks")
    lists = TrustLists(*found)
    _check(lists)
    return masks, lists


def _check(lists: TrustLists) -> None:
    try:
        for issuer in (*lists.trusted, *lists.issuers):
            x509.load_der_x509_certificate(issuer).public_key()
        for crl in (*lists.trusted_crls, *lists.issuer_crls):
            x509.load_der_x509_crl(crl)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InvalidTrustList("one of its entries is damaged") from error


def _add(directory: Path, certificates: Sequence[bytes], revocations: Sequence[bytes]) -> None:
    if not (certificates or revocations):
        return
    make_directory(directory, _OPEN_DIRECTORY)
    there = {content for _, content in _files(directory)}
    for certificate in certificates:
        if certificate not in there:
            path = directory / f"{thumbprint(x509.load_der_x509_certificate(certificate))}.der"
            write_atomically(path, certificate, _OPEN_FILE)
    for revocation in revocations:
        if revocation not in there:
            write_atomically(
                directory / f"{hashlib.sha256(revocation).hexdigest()[:40].upper()}.crl", revocation, _OPEN_FILE
            )


def _remove(directory: Path, wanted: set[bytes]) -> None:
    for path, content in _files(directory):
        if content not in wanted:
            path.unlink(missing_ok=True)


def _files(directory: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield the files with certificates and revocation lists, each with its DER; other files do not belong to it."""
    for path in sorted(directory.glob("*")):
        if path.suffix.lower() in SUFFIXES:
            with suppress(OSError, ValueError):
                yield path, read_certificate(path).public_bytes(Encoding.DER)
    yield from ((path, entry.public_bytes(Encoding.DER)) for path, entry in revocation_files(directory))
