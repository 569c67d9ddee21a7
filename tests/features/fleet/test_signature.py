"""Commands are signed and verified as JWS with Ed25519 only; joserfc is the reference implementation."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jws
from joserfc.jwk import OctKey, OKPKey

from edge.features.fleet.signature import (
    ALGORITHM,
    TYPE,
    FleetCommand,
    PublicKey,
    SignatureFault,
    SignatureRefusal,
    SignedCommand,
    read_audience,
    sign,
    verify,
)
from edge.features.fleet.signing_keys import new_key

PRIVATE, PUBLIC = new_key("anna")
OTHER_PRIVATE, OTHER = new_key("ben")
KEYS = {PUBLIC.kid: PUBLIC}
COMMAND = FleetCommand(jti="0123456789abcdef", aud=("gw-1",), iat=1000, exp=2000, cmd="status")
TEXT = sign(COMMAND, PRIVATE, PUBLIC.kid)


def encoded(content: Any) -> str:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def fault(text: str, keys: dict[str, PublicKey] = KEYS) -> SignatureFault | None:
    found = verify(text, keys)
    return found.fault if isinstance(found, SignatureRefusal) else None


def with_header(**others: object) -> str:
    header = {"alg": ALGORITHM, "kid": PUBLIC.kid, "typ": TYPE} | others
    signed = f"{encoded(header)}.{TEXT.split('.')[1]}"
    return f"{signed}.{encoded(PRIVATE.sign(signed.encode()))}"


def test_signed_command_is_verified_and_named_by_its_key() -> None:
    assert verify(TEXT, KEYS) == SignedCommand(COMMAND, PUBLIC)


def test_commands_are_compatible_with_joserfc_in_both_directions() -> None:
    oracle_public = OKPKey.import_key({"kty": "OKP", "crv": "Ed25519", "x": PUBLIC.x})
    compact_signature = jws.deserialize_compact(TEXT, oracle_public, algorithms=["Ed25519"])
    assert json.loads(compact_signature.payload or b"")["cmd"] == "status"
    oracle = OKPKey.import_key(
        {"kty": "OKP", "crv": "Ed25519", "x": PUBLIC.x, "d": encoded(PRIVATE.private_bytes_raw())}
    )
    header = {"alg": "Ed25519", "kid": PUBLIC.kid, "typ": TYPE}
    payload = json.dumps({"jti": COMMAND.jti, "aud": ["gw-1"], "iat": 1000, "exp": 2000, "cmd": "status"})
    text = jws.serialize_compact(header, payload.encode(), oracle, algorithms=["Ed25519"])
    assert verify(text, KEYS) == SignedCommand(COMMAND, PUBLIC)


@given(st.integers(0, len(TEXT) - 1), st.characters(codec="ascii"))
def test_altered_command_is_refused(position: int, character: str) -> None:
    altered = TEXT[:position] + character + TEXT[position + 1 :]
    assert altered == TEXT or fault(altered) is not None


@given(st.text(max_size=300))
def test_arbitrary_text_is_refused(text: str) -> None:
    assert fault(text) is SignatureFault.MALFORMED
    assert read_audience(text) == ()


@pytest.mark.parametrize("algorithm", ["none", "EdDSA", "HS256", "RS256", "ed25519", "Ed448", ""])
def test_other_algorithms_are_refused_before_any_computation(algorithm: str) -> None:
    assert fault(with_header(alg=algorithm)) is SignatureFault.ALGORITHM


def test_hmac_signature_with_the_public_key_is_refused() -> None:
    """The classic confusion: the attacker signs by HMAC with the public key, which is known."""
    raw = base64.urlsafe_b64decode(PUBLIC.x + "=")
    header = {"alg": "HS256", "kid": PUBLIC.kid, "typ": TYPE}
    text = jws.serialize_compact(header, base64.urlsafe_b64decode(TEXT.split(".")[1] + "=="), OctKey.import_key(raw))
    assert fault(text) is not None
    header["alg"] = ALGORITHM
    assert fault(f"{encoded(header)}.{text.split('.', 1)[1]}") is not None


@pytest.mark.parametrize(
    "others",
    [
        {"jwk": {"kty": "OKP", "crv": "Ed25519", "x": OTHER.x}},
        {"jku": "https://attacker.example/keys"},
        {"crit": ["b64"], "b64": False},
        {"zip": "DEF"},
        {"x5c": []},
    ],
    ids=",".join,
)
def test_header_with_further_members_is_refused(others: dict[str, object]) -> None:
    assert fault(with_header(**others)) is SignatureFault.MALFORMED


@pytest.mark.parametrize("others", [{"typ": "JWT"}, {"typ": ""}])
def test_token_of_another_purpose_is_refused(others: dict[str, object]) -> None:
    assert fault(with_header(**others)) is SignatureFault.ALGORITHM


@pytest.mark.parametrize(
    ("header", "claims"),
    [
        ('{{"alg":"{alg}","kid":"{kid}","typ":"{typ}"}}', '{{"aud":["gw-2"],{claims},"aud":["*"]}}'),
        ('{{"alg":"{alg}","kid":"{kid}","typ":"{typ}"}}', '{{"aud":["*"],{claims},"cmd":"restart"}}'),
        ('{{"alg":"none","alg":"{alg}","kid":"{kid}","typ":"{typ}"}}', '{{"aud":["*"],{claims}}}'),
    ],
    ids=["aud twice", "cmd twice", "alg twice"],
)
def test_signed_command_with_a_repeated_member_is_refused(header: str, claims: str) -> None:
    head = encoded(header.format(alg=ALGORITHM, kid=PUBLIC.kid, typ=TYPE).encode())
    body = claims.format(claims='"jti":"0123456789abcdef","iat":1000,"exp":2000,"cmd":"status"')
    signed = f"{head}.{encoded(body.encode())}"
    text = f"{signed}.{encoded(PRIVATE.sign(signed.encode()))}"
    assert fault(text) is SignatureFault.MALFORMED
    assert read_audience(text) == () or "alg" in header


def test_unknown_revoked_and_foreign_keys_are_refused() -> None:
    by_other = sign(COMMAND, OTHER_PRIVATE, OTHER.kid)
    assert fault(by_other) is SignatureFault.UNKNOWN_KEY
    assert fault(sign(COMMAND, OTHER_PRIVATE, PUBLIC.kid)) is SignatureFault.SIGNATURE
    revoked = PublicKey(kid=PUBLIC.kid, x=PUBLIC.x, name="anna", revoked=True)
    found = verify(TEXT, {PUBLIC.kid: revoked})
    assert found == SignatureRefusal(SignatureFault.REVOKED_KEY, PUBLIC.kid, COMMAND)
    # Rotation: both keys are accepted for a time.
    assert verify(by_other, KEYS | {OTHER.kid: OTHER}) == SignedCommand(COMMAND, OTHER)


@pytest.mark.parametrize("key", [{"kty": "EC"}, {"crv": "Ed448"}, {"x": "AAAA"}, {"x": "not base64!"}])
def test_key_of_another_type_is_refused(key: dict[str, str]) -> None:
    public_key = PublicKey(**({"kid": PUBLIC.kid, "x": PUBLIC.x} | key))  # type: ignore[arg-type]
    assert fault(TEXT, {PUBLIC.kid: public_key}) is SignatureFault.SIGNATURE


@pytest.mark.parametrize(
    "claims",
    [
        b"",
        b"[]",
        b"\xff",
        {"jti": "x"},
        {"jti": "0123456789abcdef", "aud": ["gw-1"], "iat": 1000, "exp": 2000, "cmd": "status", "nbf": 1},
        {"jti": "0123456789abcdef", "aud": "gw-1", "iat": 1000, "exp": 2000, "cmd": "status"},
        {"jti": "0123456789abcdef", "aud": ["gw-1"], "iat": "1000", "exp": 2000, "cmd": "status"},
    ],
)
def test_malformed_signed_claims_are_refused(claims: Any) -> None:
    signed = f"{TEXT.split('.')[0]}.{encoded(claims)}"
    assert fault(f"{signed}.{encoded(PRIVATE.sign(signed.encode()))}") is SignatureFault.MALFORMED


@pytest.mark.parametrize("change", ["{}=", " {}", "{}\n", "{}.x", "{}A"])
def test_second_encoding_of_a_command_is_refused(change: str) -> None:
    assert fault(change.format(TEXT)) is not None


def test_text_beyond_the_limit_is_refused() -> None:
    long = sign(
        FleetCommand(jti="x", aud=("*",), iat=1, exp=2, cmd="status", args=("x" * 20_000,)), PRIVATE, PUBLIC.kid
    )
    assert fault(long) is SignatureFault.MALFORMED
