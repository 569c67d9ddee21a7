"""Hashes passwords with Argon2id and compares them; importing it takes 6 MB, so it is imported where they are used."""

import base64
import os
import re
from collections.abc import Iterable
from typing import Final

from cryptography.exceptions import InvalidKey
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from edge.access.users import ITERATIONS, MEMORY_KIB


def hash_password(password: str) -> str:
    """Hash a password with a new salt; return the PHC string."""
    argon = Argon2id(salt=os.urandom(16), length=32, iterations=ITERATIONS, lanes=1, memory_cost=MEMORY_KIB)
    return argon.derive_phc_encoded(password.encode())


def is_password(password: str, password_hash: str) -> bool:
    """Return whether this is the password of a PHC string."""
    try:
        Argon2id.verify_phc_encoded(password.encode(errors="surrogatepass"), password_hash)
    except InvalidKey:
        return False
    return True


_HEAD: Final = re.compile(r"\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)")


def head_of(phc: str) -> str:
    """Return the cost and the salt of a PHC string."""
    return phc.rpartition("$")[0]


def hash_like(secret: str, head: str) -> str:
    """Hash a secret with the cost and the salt of other hashes, "" where they are not readable; return the PHC string.

    Badges share a salt: a code that is read names no user, and is compared with all of them after one hash.
    """
    if (match := _HEAD.fullmatch(head)) is None:
        return ""
    memory, iterations, lanes = (int(match[number]) for number in (1, 2, 3))
    salt = base64.b64decode(match[4] + "=" * (-len(match[4]) % 4))
    argon = Argon2id(salt=salt, length=32, iterations=iterations, lanes=lanes, memory_cost=memory)
    return argon.derive_phc_encoded(secret.encode(errors="surrogatepass"))


def hash_badge(code: str, badges: Iterable[str]) -> str:
    """Hash a badge code with the salt of the badges of other users, else a new one; return the PHC string."""
    heads = [head_of(badge) for badge in badges if badge]
    return hash_like(code, heads[0]) if heads else hash_password(code)
