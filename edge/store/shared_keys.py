"""The keys of what jobs share: users and operations, settings of the MES, messages, and the store itself."""

from msgspec import Struct

from edge.store.key_spec import Lifetime, key_part, register_key


class OperationsKeys(Struct, frozen=True):
    """Builds the keys of operations below one prefix."""

    prefix: str

    @register_key("string", Lifetime.LOGIN)
    def login_attempt(self, digest: str) -> str:
        """Return the key of the failed logins of an address or of a user there, or of the wrong codes of a user."""
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

    @register_key("hash", Lifetime.COMPONENT)
    def discovery_components(self) -> str:
        """Return the key of what each component of the plant is and how it is, by its id, as JSON."""
        return f"{self.prefix}:discovery:components"

    @register_key("hash", Lifetime.COMPONENT)
    def discovery_timestamps(self) -> str:
        """Return the key of the last heartbeat of each component, in seconds of the store's clock."""
        return f"{self.prefix}:discovery:timestamps"

    @register_key("hash", Lifetime.COMPONENT)
    def discovery_tokens(self) -> str:
        """Return the key of the process that works under the id of each component."""
        return f"{self.prefix}:discovery:tokens"

    @register_key("hash", Lifetime.COMPONENT)
    def discovery_plugins(self) -> str:
        """Return the key of the state of the equipment kinds and node kinds of each component, as JSON."""
        return f"{self.prefix}:discovery:plugins"

    @register_key("hash", Lifetime.OURS)
    def discovery_settings(self) -> str:
        """Return the key of the settings of the list of components: `remove_after_s`, at least 60."""
        return f"{self.prefix}:discovery:settings"

    @register_key("hash", Lifetime.OURS)
    def scripts(self) -> str:
        """Return the key of the script of commits, for programs in other languages, with its SHA-1."""
        return f"{self.prefix}:scripts"

    @register_key("hash", Lifetime.OURS)
    def fleet_keys(self) -> str:
        """Return the key of the public keys of administrators as JSON Web Keys, with `[fleet] keys_from = "store"`."""
        return f"{self.prefix}:keys"

    @register_key("hash", Lifetime.COMMAND)
    def fleet_commands(self) -> str:
        """Return the key of the signed commands for the components on this store, by their ids."""
        return f"{self.prefix}:commands"

    @register_key("hash", Lifetime.COMMAND_RESULT)
    def fleet_results(self, id: str) -> str:
        """Return the key of the results of a signed command, by component, as JSON."""
        return f"{self.prefix}:commands:{id}"

    @register_key("string", Lifetime.COMMAND)
    def fleet_executed(self, component: str, mark: str) -> str:
        """Return the key of the mark that a component has executed or refused a signed command."""
        return f"{self.prefix}:executed:{component}:{mark}"

    @register_key("hash", Lifetime.OURS)
    def fleet_executing(self, component: str) -> str:
        """Return the key of the signed commands that a component executes now."""
        return f"{self.prefix}:executing:{component}"

    @register_key("hash", Lifetime.OURS)
    def operations(self) -> str:
        """Return the key of the operations by id, as JSON: scheduled, running, and the last 100 that have ended."""
        return f"{self.prefix}:operations"

    @register_key("hash", Lifetime.OURS)
    def operations_progress(self) -> str:
        """Return the key of the progress of each operation, from 0.0 to 100.0."""
        return f"{self.prefix}:operations:progress"

    @register_key("zset", Lifetime.OURS)
    def operations_queue(self, type: str) -> str:
        """Return the key of the scheduled operations of a type, by the instant at which they are due."""
        return f"{self.prefix}:operations:queue:{type}"

    @register_key("string", Lifetime.OURS)
    def initialized(self) -> str:
        """Return the key of whether the station files have filled the store: 0 while they do, 1 from then on."""
        return f"{self.prefix}:initialized"

    @register_key("string", Lifetime.OURS)
    def mode(self) -> str:
        """Return the key of the mode of all gateways: 0 works, 1 is under maintenance."""
        return f"{self.prefix}:mode"

    @register_key("string", Lifetime.OURS)
    def mode_of(self, gateway: str) -> str:
        """Return the key of the mode of one gateway: 0 works, 1 is under maintenance."""
        return f"{self.prefix}:mode:{gateway}"

    @register_key("hash", Lifetime.OURS)
    def maintenance(self) -> str:
        """Return the key of who switched a mode on, since when, until when; by gateway, `*` for all."""
        return f"{self.prefix}:maintenance"

    @register_key("hash", Lifetime.OURS)
    def messages(self) -> str:
        """Return the key of the messages to people, by name; `{$Name}` in them is a localised text."""
        return f"{self.prefix}:messages"

    @register_key("hash", Lifetime.OURS)
    def localization(self) -> str:
        """Return the key of the localised texts of the site, by `[lang:]Name`."""
        return f"{self.prefix}:localization"


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

    @register_key("stream", Lifetime.MARKS)
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
