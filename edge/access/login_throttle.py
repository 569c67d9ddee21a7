"""Delays logins after failures, and keeps the failures in the store: a restart forgets none of them."""

import ipaddress
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol, TypeAlias

import structlog

from edge.foundation.errors import Defect, Unavailable
from edge.store import logins
from edge.store.client import Store

logger = structlog.get_logger(__name__)

_Key = tuple[str, ...]
_HOST_BITS = 64
"""The last bits of an IPv6 address, which a host chooses itself (RFC 4291, 2.5.1)."""


class LoginThrottle:
    """The wait after failed logins: per user at an address, and per address for all users.

    After the free attempts the wait is one second; it doubles with each further failure. A user is counted per address:
    failures from one address do not lock out the user at another address.
    """

    FREE = 3
    FREE_FOR_ADDRESS = 20
    LONGEST_S = 900.0
    MOST = 1000

    def __init__(
        self, clock: Callable[[], float], keys: "AttemptKeys | None" = None, forget_s: float = LONGEST_S
    ) -> None:
        """Count by `keys`, and forget failures `forget_s` after the end of their wait."""
        self._clock = clock
        self._keys = keys or keys_of_login
        self.forget_s = forget_s
        self._failures: dict[_Key, tuple[int, float]] = {}

    def is_blocked(self, name: str, address: str) -> bool:
        """Return whether this attempt is refused unchecked."""
        now = self._clock()
        return any(self._failures.get(key, (0, 0.0))[1] > now for key, _ in self._keys(name, address))

    def failed(self, name: str, address: str) -> None:
        """Record a failure of this user and of this address."""
        now = self._clock()
        for key, free in self._keys(name, address):
            count, until = self._failures.pop(key, (0, now))
            count = 1 if until + self.forget_s < now else count + 1  # an old failure has expired
            self._failures[key] = count, now + self._wait_s(count, free)
        while len(self._failures) > self.MOST:
            del self._failures[next(iter(self._failures))]

    def add_to(self, stored: int, key: _Key, name: str, address: str) -> None:
        """Count the failure that was recorded last after those that another gateway has stored."""
        free = next(free for row, free in self._keys(name, address) if row == key)
        self._failures[key] = stored + 1, self._clock() + self._wait_s(stored + 1, free)

    def _wait_s(self, count: int, free: int) -> float:
        return min(2.0 ** min(count - free, 30), self.LONGEST_S) if count >= free else 0.0

    def succeeded(self, name: str, address: str) -> None:
        """Reset the failures of this user at this address; those of the address may belong to other users."""
        self._failures.pop((address, name), None)

    def keys_of(self, name: str, address: str) -> list[_Key]:
        """Return the keys by which an attempt is counted."""
        return [key for key, _ in self._keys(name, address)]

    def unknown_keys(self, name: str, address: str) -> list[_Key]:
        """Return the keys of an attempt of which no failure is known here."""
        return [key for key in self.keys_of(name, address) if key not in self._failures]

    def failures_of(self, key: _Key) -> int:
        """Return how many failures of a key are known."""
        return self._failures.get(key, (0, 0.0))[0]

    def forget(self, key: _Key) -> None:
        """Forget the failures of a key: another gateway has cleared them, or they have expired."""
        self._failures.pop(key, None)

    def restore(self, key: _Key, failures: int, wait_s: float) -> None:
        """Restore the failures of a key as they were stored."""
        self._failures[key] = failures, self._clock() + min(wait_s, self.LONGEST_S)

    def known(self, name: str, address: str) -> Iterator[tuple[_Key, int, float]]:
        """Yield each key of an attempt with its failures and the seconds that it still waits."""
        for key, _ in self._keys(name, address):
            if key in self._failures:
                count, until = self._failures[key]
                yield key, count, max(0.0, until - self._clock())


AttemptKeys: TypeAlias = Callable[[str, str], Iterable[tuple[_Key, int]]]
"""Returns the keys by which an attempt of a user at an address is counted, each with its free attempts."""

CODES: Final = logins.CODES
"""Stands for all addresses where wrong codes are counted."""
_FREE_CODES: Final = 10
_FORGET_CODES_S: Final = 86_400.0


def code_throttle(clock: Callable[[], float]) -> LoginThrottle:
    """Return the throttle of wrong codes after the right password: per user, from all addresses together.

    A code has six digits: with 96 guesses a day it is not found in years.
    """
    return LoginThrottle(clock, lambda name, _: (((CODES, name), _FREE_CODES),), _FORGET_CODES_S)


def keys_of_login(name: str, address: str) -> Iterator[tuple[_Key, int]]:
    """Yield the keys of a login: the user at the address, and the address."""
    yield (address, name), LoginThrottle.FREE
    yield (address,), LoginThrottle.FREE_FOR_ADDRESS


def source_of(address: str) -> str:
    """Return the address by which failures are counted: one for all addresses that a host can choose itself.

    Those are the addresses of its loopback interface, and those of its network in IPv6.
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address  # of the command line
    found = getattr(found, "ipv4_mapped", None) or found
    if found.is_loopback:
        return "loopback"
    return str(found) if found.version == 4 else str(ipaddress.ip_network((found, _HOST_BITS), strict=False))  # noqa: PLR2004 - IPv4


class LoginMemory(Protocol):
    """Keeps what logins must remember beyond the life of a process."""

    async def load_failures(self, throttle: LoginThrottle, name: str, address: str) -> None:
        """Load the stored failures of an attempt."""

    async def save_failures(self, throttle: LoginThrottle, name: str, address: str) -> None:
        """Save the failures that the throttle knows."""

    async def clear_failures(self, name: str, address: str) -> None:
        """Remove the failures of a user at an address."""

    async def use_step(self, name: str, step: int) -> bool:
        """Mark the time step of a code as used; return False when it or a later one was used. Raises Unavailable."""

    async def use_recovery_code(self, name: str, digest: str) -> bool:
        """Mark a recovery code as used; return False when it was used before. Raises Unavailable."""


class StoredMemory:
    """What logins remember, in the store: all gateways on it count failures together.

    Failures are counted in memory alone while the store is unavailable.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._unsaved: set[_Key] = set()
        """Keys whose last failure is in memory alone."""

    async def load_failures(self, throttle: LoginThrottle, name: str, address: str) -> None:
        """Load the stored failures of an attempt, of whichever gateway; unsaved ones stay."""
        for key in throttle.keys_of(name, address):
            if key in self._unsaved and key not in throttle.unknown_keys(name, address):
                continue
            try:
                found = await logins.load_failures(self._store, key)
            except (Unavailable, Defect) as error:
                logger.warning("login failures not loaded", reason=error.message)
                return
            if found is None:
                throttle.forget(key)
            elif throttle.failures_of(key) != found[0]:
                throttle.restore(key, *found)

    async def save_failures(self, throttle: LoginThrottle, name: str, address: str) -> None:
        """Save the failures that the throttle knows, after those that another gateway stored meanwhile."""
        for key in throttle.keys_of(name, address):
            try:
                await self._save(throttle, key, name, address)
                self._unsaved.discard(key)
            except (Unavailable, Defect) as error:
                if len(self._unsaved) < throttle.MOST:
                    self._unsaved.add(key)
                logger.warning("login failures not saved", reason=error.message)

    async def _save(self, throttle: LoginThrottle, key: _Key, name: str, address: str) -> None:
        while known := next((row for row in throttle.known(name, address) if row[0] == key), None):
            stored = await logins.save_failures(self._store, *known, throttle.forget_s)
            if stored is None:
                return
            throttle.add_to(stored, key, name, address)

    async def clear_failures(self, name: str, address: str) -> None:
        """Remove the failures of a user at an address."""
        try:
            await logins.clear_failures(self._store, (address, name))
        except (Unavailable, Defect) as error:
            logger.warning("login failures not cleared", reason=error.message)

    async def use_step(self, name: str, step: int) -> bool:
        """Mark the time step of a code as used; return False when it or a later one was used. Raises Unavailable."""
        return await logins.use_step(self._store, name, step)

    async def use_recovery_code(self, name: str, digest: str) -> bool:
        """Mark a recovery code as used; return False when it was used before. Raises Unavailable."""
        return await logins.use_recovery_code(self._store, name, digest)


class ProcessMemory:
    """What logins remember for the life of this process: for servers without a store."""

    def __init__(self) -> None:
        self._steps: dict[str, int] = {}
        self._codes: set[tuple[str, str]] = set()

    async def load_failures(self, throttle: LoginThrottle, name: str, address: str) -> None:
        """Return at once: the throttle knows all failures of this process."""

    async def save_failures(self, throttle: LoginThrottle, name: str, address: str) -> None:
        """Return at once: the throttle knows all failures of this process."""

    async def clear_failures(self, name: str, address: str) -> None:
        """Return at once: the throttle knows all failures of this process."""

    async def use_step(self, name: str, step: int) -> bool:
        """Mark the time step of a code as used; return False when it or a later one was used."""
        if step <= self._steps.get(name, -1):
            return False
        self._steps[name] = step
        return True

    async def use_recovery_code(self, name: str, digest: str) -> bool:
        """Mark a recovery code as used; return False when it was used before."""
        is_new = (name, digest) not in self._codes
        self._codes.add((name, digest))
        return is_new
