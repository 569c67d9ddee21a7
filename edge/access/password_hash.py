"""Hashes passwords with Argon2id and compares them; importing it takes 6 MB, so it is imported where they are used."""

import os

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
