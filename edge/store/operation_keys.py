"""The keys of operations: users, sessions, components and signed commands."""

from dataclasses import dataclass

from edge.store.key_spec import Lifetime, key_part, register_key


@dataclass(frozen=True, slots=True)
class OperationsKeys:
    """Builds the keys of operations below one prefix."""

    prefix: str

    @register_key("string", Lifetime.LOGIN)
    def login_attempt(self, digest: str) -> str:
        """Return the key of the failed logins of an address, or of a user at an address."""
        return f"{self.prefix}:2fa:{digest}"

    @register_key("string", Lifetime.LOGIN)
    def used_totp(self, user: str) -> str:
        """Return the key of the time step of the last one-time code that a user has used."""
        return f"{self.prefix}:2fa:totp:{key_part(user)}"

    @register_key("string", Lifetime.RECOVERY)
    def used_recovery(self, user: str) -> str:
        """Return the key of the digests of the recovery codes that a user has used."""
        return f"{self.prefix}:2fa:recovery:{key_part(user)}"

    @register_key("string", Lifetime.SESSION)
    def session(self, id: str) -> str:
        """Return the key of a session of OPC UA or of the command line, as JSON."""
        return f"{self.prefix}:session:{id}"

    @register_key("hash", Lifetime.OURS)
    def last_activity(self) -> str:
        """Return the key of the last activity of each session, as ISO 8601."""
        return f"{self.prefix}:last-activity"
