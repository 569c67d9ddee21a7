"""The keys of the store itself: its version, its generation, and the instances that work on it."""

from edge.store.key_spec import Lifetime, register_key
from edge.store.message_keys import MessageKeys


class ServerKeys(MessageKeys, frozen=True):
    """Builds the keys of version, generation and leases of instances below one prefix."""

    @register_key("string", Lifetime.OURS)
    def store_version(self) -> str:
        """Return the key of the version of the stored data: see store/server_check.py."""
        return f"{self.prefix}:form"

    @register_key("hash", Lifetime.OURS)
    def generation(self) -> str:
        """Return the key of the generation behind Sentinel: its id, the config-epoch, the difference of the clocks."""
        return f"{self.prefix}:generation"

    @register_key("string", Lifetime.OURS)
    def replication_mark(self) -> str:
        """Return the key of the write before each wait for the replicas."""
        return f"{self.prefix}:replication-mark"

    @register_key("string", Lifetime.OURS)
    def lease_instance(self, consumer: str) -> str:
        """Return the key of the lease of an instance: the token of its process, and a counter."""
        return f"{self.prefix}:lease:instance:{consumer}"

    @register_key("string", Lifetime.OURS)
    def lease_publisher(self, scope: str) -> str:
        """Return the key of the instance that publishes the changes of a scope, for as long as its own lease lasts."""
        return f"{self.prefix}:lease:publisher:{scope}"
