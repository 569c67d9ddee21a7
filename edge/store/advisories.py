"""Known vulnerabilities of Redis and Valkey that concern a gateway, for a check without network."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

Version = tuple[int, ...]


class Advisory(Struct, frozen=True):
    """A vulnerability of the versions from `since` on, and the first version of each branch that is fixed."""

    id: str
    product: str
    summary: str
    since: Version
    fixed: Sequence[Version]

    def concerns(self, product: str, version: Version) -> bool:
        """Return whether a version is vulnerable, by upstream's numbers: a distribution may have fixed an older one."""
        if product != self.product or version < self.since:
            return False
        own_branch = [each for each in self.fixed if each[:2] == version[:2]]
        return version < min(own_branch or [max(self.fixed)])


ADVISORIES = (
    Advisory(
        "CVE-2025-49844",
        "redis",
        "a Lua script can execute code on the server",
        (0,),
        ((6, 2, 20), (7, 2, 11), (7, 4, 6), (8, 0, 4), (8, 2, 2)),
    ),
    Advisory(
        "CVE-2025-49844",
        "valkey",
        "a Lua script can execute code on the server",
        (0,),
        ((7, 2, 11), (8, 0, 6), (8, 1, 4)),
    ),
    Advisory(
        "CVE-2026-23479",
        "redis",
        "a client that is evicted while it blocks can execute code on the server",
        (7, 2, 0),
        ((8, 6, 3),),
    ),
    Advisory(
        "CVE-2026-27623",
        "valkey",
        "any host that reaches the port can stop the server",
        (9, 0, 0),
        ((9, 0, 3),),
    ),
)
"""As of November 2026. Vulnerabilities of the cluster bus are left out: a gateway works with one server."""


def find_advisories(info: Mapping[str, str]) -> list[Advisory]:
    """Return the advisories that concern the server of an INFO reply."""
    product, version = product_of(info)
    return [each for each in ADVISORIES if each.concerns(product, parse_version(version))]


def product_of(info: Mapping[str, str]) -> tuple[str, str]:
    """Return the product of an INFO reply, `redis` or `valkey`, and its version."""
    product = "valkey" if info.get("server_name") == "valkey" else "redis"
    return product, str(info[f"{product}_version"])


def parse_version(text: str) -> Version:
    """Return the numbers of a version."""
    numbers = (part.partition("-")[0] for part in text.split("."))
    return tuple(int(number) for number in numbers if number.isdecimal())
