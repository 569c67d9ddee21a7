"""Signed commands for components: their claims, the public keys, and the results of the components."""

from enum import StrEnum

from msgspec import Struct


class FleetCommand(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The claims of a signed command, named as in RFC 7519; instants in seconds since the epoch.

    `aud` has names of components, labels as `line=3`, or `*`. `cmd` is a command of `edge`, `args` its arguments.
    """

    jti: str
    aud: tuple[str, ...]
    iat: int
    exp: int
    cmd: str
    args: tuple[str, ...] = ()


class PublicKey(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A public key as JSON Web Key (RFC 8037); `revoked` keys stay in the list, so that their commands are named."""

    kid: str
    x: str
    name: str = ""
    kty: str = "OKP"
    crv: str = "Ed25519"
    revoked: bool = False


class FleetState(StrEnum):
    """The state of a command at a component; it survives a restart of the component."""

    EXECUTING = "executing"
    SUCCESSFUL = "successful"
    FAILED = "failed"
    REFUSED = "refused"
    INTERRUPTED = "interrupted"


class FleetResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of a command at a component; `at` is in milliseconds since the epoch, by its clock."""

    state: FleetState
    at: int
    component: str
    command: str = ""
    reason: str = ""
    output: str = ""
