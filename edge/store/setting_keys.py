"""The keys of what the MES sets for a station."""

from edge.store.key_spec import Lifetime, register_key
from edge.store.operation_keys import OperationsKeys


class SettingKeys(OperationsKeys, frozen=True):
    """Builds the keys of work masters and resources below one prefix."""

    @register_key("hash", Lifetime.PERMANENT)
    def workmaster(self, id: str) -> str:
        """Return the key of a work master with its recipe."""
        return f"{self.prefix}:workmaster:{id}"

    @register_key("set", Lifetime.PERMANENT)
    def workmaster_list(self, scope: str) -> str:
        """Return the key of the ids of the work masters that a scope may run."""
        return f"{self.prefix}:workmaster:list:{scope}"

    @register_key("set", Lifetime.PERMANENT)
    def resource_list(self, kind: str, scope: str) -> str:
        """Return the key of the ids of one kind of resource that a scope may use."""
        return f"{self.prefix}:{kind}:list:{scope}"

    @register_key("stream", Lifetime.STREAM)
    def settings_changes(self) -> str:
        """Return the key of the scopes whose settings the MES changed, each change."""
        return f"{self.prefix}:settings:changes"

    @register_key("string", Lifetime.PERMANENT)
    def jobacceptance(self, scope: str) -> str:
        """Return the key of the most job orders that a scope holds at a time."""
        return f"{self.prefix}:jobacceptance:{scope}"
