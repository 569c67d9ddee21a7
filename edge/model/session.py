"""Sessions of people and programs with the gateway: who, by which way, from where."""

from typing import Literal

from msgspec import Struct

SessionWay = Literal["opcua", "cli", "web"]


class Session(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session as it is stored. `since` is in milliseconds since the epoch; `ended` asks its gateway to end it."""

    user: str
    role: str
    way: SessionWay
    instance: str
    since: int
    address: str = ""
    client: str = ""
    ended: bool = False
