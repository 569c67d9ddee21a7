"""The keys of administrators: an encrypted private key in a file, and public keys in a folder as JSON Web Keys."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import msgspec
import structlog
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from edge.features.fleet.signature import PublicKey, is_usable, public_key
from edge.foundation.errors import Refused
from edge.foundation.files import write_atomically
from edge.foundation.text import Text

logger = structlog.get_logger(__name__)

SUFFIX = ".jwk"
_ADVICE = "Use the .jwk file that `edge fleet keys create` wrote."
SHORTEST_PASSWORD = 12


def new_key(name: str) -> tuple[Ed25519PrivateKey, PublicKey]:
    """Return a new key pair; the id of the key is its thumbprint (RFC 7638)."""
    private = Ed25519PrivateKey.generate()
    without_id = public_key(private.public_key(), "", name)
    return private, msgspec.structs.replace(without_id, kid=thumbprint(without_id))


def thumbprint(key: PublicKey) -> str:
    """Return the thumbprint of a key (RFC 7638, RFC 8037 appendix A.3), its first 32 characters."""
    members = json.dumps({"crv": key.crv, "kty": key.kty, "x": key.x}, separators=(",", ":"))
    return hashlib.sha256(members.encode()).hexdigest()[:32]


def write_private(file: Path, key: Ed25519PrivateKey, password: str) -> None:
    """Write a private key, encrypted with a password. Raises OSError."""
    encryption = BestAvailableEncryption(password.encode())
    write_atomically(file, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption), 0o600)


def read_private(file: Path, password: str) -> tuple[Ed25519PrivateKey, str]:
    """Return a private key and the id of its public key. Raises Refused and OSError."""
    content = file.read_bytes()
    advice = "Create one with: edge fleet keys create NAME FILE"
    try:
        key = load_pem_private_key(content, password.encode())
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise Refused(
            "key", Text.of("{file}: wrong password, or no encrypted private key", file=file), advice
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise Refused("key", Text.of("{file} is not an Ed25519 key", file=file), advice)
    return key, thumbprint(public_key(key.public_key(), "", ""))


def read_public(content: bytes) -> PublicKey:
    """Return a public key. Raises Refused for one of another type, or with an id that is not its thumbprint."""
    try:
        key = msgspec.json.decode(content, type=PublicKey)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Refused("key", Text.of("no public key as JSON Web Key: {reason}", reason=error), _ADVICE) from error
    if not is_usable(key) or key.kid != thumbprint(key):
        raise Refused("key", Text.of("{key} is not an Ed25519 key with its own id", key=key.name or key.kid), _ADVICE)
    return key


def read_folder(folder: Path) -> dict[str, PublicKey]:
    """Return the keys of a folder; a missing folder has none, and an invalid file is logged and skipped."""
    public_keys: dict[str, PublicKey] = {}
    for file in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            key = read_public(file.read_bytes())
        except (OSError, Refused) as error:
            logger.warning("fleet key unusable", file=str(file), reason=str(error))
            continue
        # A revocation in any file counts.
        if key.kid not in public_keys or key.revoked:
            public_keys[key.kid] = key
    return public_keys


def usable(keys: Mapping[str, PublicKey]) -> dict[str, PublicKey]:
    """Return the keys that may be used: those whose id is their thumbprint."""
    return {kid: key for kid, key in keys.items() if is_usable(key) and thumbprint(key) == kid}


def write_public(folder: Path, key: PublicKey) -> Path:
    """Write a public key into a folder; return its file. Raises OSError."""
    file = folder / f"{key.kid}{SUFFIX}"
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(file, msgspec.json.encode(key) + b"\n", 0o644)
    return file
