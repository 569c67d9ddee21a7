"""A certificate as `--json` and the HTTP API state it."""

from typing import Literal, TypeAlias

from msgspec import Struct

CertificateState: TypeAlias = Literal["own", "trusted", "issuer", "rejected"]


class PublicCertificate(Struct, frozen=True, kw_only=True):
    """A certificate of the OPC UA server, of a client or of an authority; `expires` is its last day."""

    state: CertificateState
    thumbprint: str
    subject: str
    applications: tuple[str, ...]
    expires: str
