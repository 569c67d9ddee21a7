"""Codes conform to RFC 6238, and a secret is split into password and code without loss."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.access import totp

RFC_SECRET = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
"""`12345678901234567890`, the secret of the examples of RFC 6238 (appendix B)."""


@pytest.mark.parametrize(
    ("at_s", "code"), [(59, "287082"), (1111111109, "081804"), (1234567890, "005924"), (20000000000, "353130")]
)
def test_codes_of_rfc_6238_are_accepted_in_their_step(at_s: int, code: str) -> None:
    assert totp.matching_step(RFC_SECRET, code, at_s) == at_s // totp.STEP_S
    assert totp.matching_step(RFC_SECRET, code, at_s + 3 * totp.STEP_S) is None


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ("secret123456", totp.SplitSecret("secret", totp="123456")),
        ("secret", totp.SplitSecret("secret")),
        ("12345678123456", totp.SplitSecret("12345678", totp="123456")),
        ("secretwmyae-h97kb", totp.SplitSecret("secret", recovery="wmyae-h97kb")),
        ("secret\u0661\u0662\u0663\u0664\u0665\u0666", totp.SplitSecret("secret\u0661\u0662\u0663\u0664\u0665\u0666")),
    ],
)
def test_code_is_read_from_the_end_of_the_password(sent: str, expected: totp.SplitSecret) -> None:
    assert totp.split(sent) == expected


def test_new_recovery_codes_are_recognised() -> None:
    codes = totp.new_recovery_codes()
    assert len(set(codes)) == totp.RECOVERY_CODES
    assert {totp.split(f"secret{code}") for code in codes} == {
        totp.SplitSecret("secret", recovery=code) for code in codes
    }


@given(st.text(max_size=40))
def test_split_keeps_every_character(sent: str) -> None:
    parts = totp.split(sent)
    assert parts.password + parts.totp + parts.recovery == sent
