"""A password has one of many hashes, and only the right one has it."""

from edge.access.password_hash import hash_password, is_password
from tests.passwords import CHEAP_HASH, PASSWORD


def test_equal_passwords_have_different_hashes() -> None:
    assert hash_password("same") != hash_password("same")


def test_only_the_right_password_has_a_hash() -> None:
    assert is_password(PASSWORD, CHEAP_HASH)
    assert not is_password(PASSWORD + "!", CHEAP_HASH)
    assert not is_password("\udcff", CHEAP_HASH)
