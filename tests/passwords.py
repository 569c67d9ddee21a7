"""A password for tests: its hash names a small cost, so that a login takes a millisecond and not 60."""

from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

PASSWORD = "correct horse"
CHEAP_HASH = Argon2id(salt=bytes(16), length=32, iterations=1, lanes=1, memory_cost=8).derive_phc_encoded(
    PASSWORD.encode()
)
