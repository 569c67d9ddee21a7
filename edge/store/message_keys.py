"""The keys of messages: what marks their repetitions, what was refused, what was given up or came late."""

from edge.store.key_spec import Lifetime, key_part, register_key
from edge.store.setting_keys import SettingKeys


class MessageKeys(SettingKeys, frozen=True):
    """Builds the keys of marks, refused messages and dead letters below one prefix."""

    @register_key("string", Lifetime.DEDUPE)
    def joborder_tombstone(self, id: str) -> str:
        """Return the key of the instant at which the job order of that id was removed, with digests of its results."""
        return f"{self.prefix}:tombstone:{id}"

    @register_key("string", Lifetime.DEDUPE)
    def cededupe(self, digest: str) -> str:
        """Return the key of the answer that was given to a CloudEvent, by its source and id."""
        return f"{self.prefix}:cededupe:{digest}"

    @register_key("string", Lifetime.DEDUPE)
    def transdedupe(self, digest: str) -> str:
        """Return the key of the answer that was given in a transaction, by its scope and id."""
        return f"{self.prefix}:transdedupe:{digest}"

    @register_key("set", Lifetime.OURS)
    def mark_senders(self) -> str:
        """Return the key of the senders of marked messages: `calls:{source}` or `events:{equipment}`."""
        return f"{self.prefix}:marks"

    @register_key("stream", Lifetime.DEDUPE)
    def marks_of(self, sender: str) -> str:
        """Return the key of the marks of a sender: digests of `cededupe` (field e) and `transdedupe` (field t)."""
        return f"{self.prefix}:marks:{key_part(sender)}"

    @register_key("hash", Lifetime.DISCARDED)
    def discarded(self, equipment: str, period: int) -> str:
        """Return the key of the events of equipment that no job took, by digest; one for each half hour."""
        return f"{self.prefix}:discarded:{key_part(equipment)}:{period}"

    @register_key("hash", Lifetime.AUDITED)
    def audited(self, period: int) -> str:
        """Return the key of the calls that a gateway has put in the audit trail, by digest; one for each 25 hours."""
        return f"{self.prefix}:audited:{period}"

    @register_key("stream", Lifetime.STREAM)
    def event_refused_list(self) -> str:
        """Return the key of refused messages and declined calls."""
        return f"{self.prefix}:event:refused:list"

    @register_key("stream", Lifetime.DEAD_LETTERS)
    def sfc_dead_letters(self) -> str:
        """Return the key of what was given up, with the reason."""
        return f"{self.prefix}:sfc:dead-letters"

    @register_key("stream", Lifetime.DEAD_LETTERS)
    def late_results(self) -> str:
        """Return the key of the results that no command waited for, with the reason."""
        return f"{self.prefix}:sfc:late-results"
