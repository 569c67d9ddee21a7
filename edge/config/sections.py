"""Defines every section and key of the settings with type, default and meaning, and conflicts between keys.

The annotation of a key has its meaning (`description`), its bounds, and in `extra` what `edge.config.value`
validates beyond the type: the `schemes` of a URL, a path that `must_be` there, a `secret`.
"""

import pkgutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from edge.config.hosts import BrokerKeys, broker_conflicts, is_loopback
from edge.config.opcua import OpcuaSettings
from edge.config.retention import RetentionSettings
from edge.foundation.text import Text


class MaintenanceSettings(Struct, frozen=True, kw_only=True):
    """`[maintenance]`: alarms during maintenance, and how an upgrade of the package begins."""

    suppress_alarms: Annotated[
        tuple[str, ...],
        Meta(
            description="Rules whose alarms are suppressed during maintenance, by id; `*` matches any text, so that "
            '`["*"]` suppresses all.'
        ),
    ] = ()
    drain_before_upgrade: Annotated[
        int,
        Meta(
            ge=0,
            le=86_400,
            description="Seconds for which an upgrade of the package waits for the end of running jobs, with the "
            "maintenance mode on; 0: it does not wait.",
        ),
    ] = 0


Topic = Annotated[
    str,
    Meta(
        pattern=r"^[^\s/+#]+(/[^\s/+#]+)*$",
        extra={"expected": "an MQTT topic without wildcards, blanks or a slash at its ends"},
    ),
]
_LEVEL = r"(\+|[^\s/+#]*)"
TopicFilter = Annotated[
    str,
    Meta(
        # MQTT 5, 4.7.1 and 4.8.2.
        pattern=rf"^(\$share/[^\s/+#]+/)?(?=.)(?!\$share/)(#|{_LEVEL}(/{_LEVEL})*(/#)?)$",
        extra={"expected": "an MQTT topic filter without blanks, as mes/+/answers or mes/#"},
    ),
]


class NorthboundSettings(Struct, frozen=True, kw_only=True):
    """`[northbound]`: the job interface towards the MES."""

    topic_prefix: Annotated[Topic, Meta(description="Calls come on `{topic_prefix}/{scope}/commands`.")] = "app/jobs"
    max_downloadable_job_orders: Annotated[
        int, Meta(ge=1, le=65535, description="Maximum number of job orders of a scope at a time.")
    ] = 1000
    max_age: Annotated[
        int,
        Meta(
            ge=0,
            description="Age in seconds at which a message is refused as expired, by its own `time` or the broker's "
            "count of its expiry; 0: at no age.",
        ),
    ] = 86_400
    progress: Annotated[
        Literal["readers", "always", "off"],
        Meta(
            description="When the progress of running recipes is published: while the topic has `readers` (found out "
            "once a minute), `always`, or never (`off`)."
        ),
    ] = "readers"
    response_topics: Annotated[
        tuple[TopicFilter, ...],
        Meta(description="Topic filters outside `topic_prefix` to which answers may go, as `mes/+/answers`."),
    ] = ()
    event_version: Annotated[
        int,
        Meta(
            ge=1,
            le=2,
            description="Form of events about alarms and progress, and of answers about flows: `2`, or `1` as in "
            "release 0.9, until the next release.",
        ),
    ] = 2


class OperationsSettings(Struct, frozen=True, kw_only=True):
    """`[operations]`: the files of backups and support bundles that a gateway makes."""

    directory: Annotated[
        str,
        Meta(
            description="Folder of the files that operations write; it is created.",
            extra={"expected": "the path of a directory"},
        ),
    ] = "/var/lib/microdcs-edge/operations"
    recording_mib: Annotated[
        int,
        Meta(ge=1, le=1_048_576, description="Largest size of a recording in MiB; one that reaches it ends."),
    ] = 100
    kept_files: Annotated[int, Meta(ge=1, le=1000, description="Newest files of each type that are kept there.")] = 7


class StationFilesSettings(Struct, frozen=True, kw_only=True):
    """`[station]`: station files, which fill an empty store and are compared with it."""

    files: Annotated[
        str,
        Meta(
            description="Folder of the station files: Work Masters, resources, limits, tags, rules and flows. An empty "
            "store is filled from it at the start. It may be absent; empty switches station files off.",
            extra={"expected": "the path of a directory"},
        ),
    ] = "/etc/microdcs-edge/station.d"
    compare: Annotated[
        int, Meta(ge=1, le=86_400, description="Seconds between two comparisons of the store with the files.")
    ] = 60


class UsersSettings(Struct, frozen=True, kw_only=True):
    """`[users]`: the user file, and what a login needs."""

    file: Annotated[
        str,
        Meta(
            description="Users, their roles, password hashes and second factors; `edge users` writes it. Empty takes "
            "`[opcua] users_file`.",
            extra={"expected": "the path of a file"},
        ),
    ] = ""
    totp: Annotated[
        tuple[Literal["observer", "operator", "engineer"], ...],
        Meta(
            description="Roles whose users need a second factor; other users may have one.",
            extra={"expected": "a list of observer, operator, engineer"},
        ),
    ] = ()
    cli: Annotated[
        Literal["open", "login"],
        Meta(
            description="`login` lets commands change something only after `edge users login`, and names that user in "
            "the audit trail; `open` takes the user of the system."
        ),
    ] = "open"
    session: Annotated[
        int, Meta(ge=60, le=604_800, description="Seconds after which a login on the command line ends.")
    ] = 28_800
    second_person: Annotated[
        tuple[Literal["retry", "skip", "force", "complete"], ...],
        Meta(
            description="Interventions in a job that take effect only when a second user asks for the same.",
            extra={"expected": "a list of retry, skip, force, complete"},
        ),
    ] = ()
    second_person_resolve: Annotated[
        Literal["auto", "on", "off"],
        Meta(
            description="Whether a decision about an unknown outcome (`edge jobs resolve`) takes effect only when a "
            "second user asks for the same: `auto` where `skip` does, as both write a result by hand."
        ),
    ] = "auto"
    second_person_within: Annotated[
        int, Meta(ge=10, le=86_400, description="Seconds within which the second user must ask for it.")
    ] = 600


NAME = r"^[^\s/+#:*?\[\]{}]+$"
"""Pattern of a name that is one level of an MQTT topic and one part of a Redis key."""
NAME_EXPECTED = "a name without blanks or any of / + # : * ? [ ] { }"

_Name = Annotated[str, Meta(pattern=NAME, extra={"expected": NAME_EXPECTED})]
FilePath = Annotated[str, Meta(extra={"must_be": "file"})]
Password = Annotated[str, Meta(extra={"secret": True})]
PasswordFile = Annotated[
    str,
    Meta(
        description="File that holds the password; systemd's credentials are found by their bare name.",
        extra={"expected": "the path of a file"},
    ),
]
_MqttUrl = Annotated[str, Meta(extra={"schemes": ("mqtt", "mqtts")})]


class GatewaySettings(Struct, frozen=True, kw_only=True):
    """`[gateway]`: name of this gateway and its scopes."""

    name: Annotated[_Name, Meta(description="Name of this gateway in messages, logs and the OPC UA server.")] = "edge"
    scopes: Annotated[tuple[_Name, ...], Meta(min_length=1, description="ISA-95 scopes whose job orders run here.")] = (
        "station-1",
    )


class SentinelLogin(Struct, frozen=True):
    """Our login at the sentinels."""

    username: str = ""
    password: str = ""
    password_file: str = ""


class RedisSettings(Struct, frozen=True, kw_only=True):
    """`[redis]`: the store of every decision."""

    url: Annotated[
        str,
        Meta(
            description="Redis 7, Valkey 8 or newer: `redis://`, `rediss://` (TLS), "
            "`redis+sentinel://host:port,host:port/service`, `rediss+sentinel://` (TLS to sentinels and servers), "
            "`unix:///path`; `embedded:` or `embedded:/dir` starts the installed redis-server or valkey-server.",
            extra={"schemes": ("redis", "rediss", "redis+sentinel", "rediss+sentinel", "unix", "embedded")},
        ),
    ] = "redis://127.0.0.1:6379"
    prefix: Annotated[_Name, Meta(description="First part of every key.")] = "microdcs-edge"
    password: Annotated[Password, Meta(description="Password of the user in `url`, else of the default user.")] = ""
    password_file: PasswordFile = ""
    sentinel_username: Annotated[str, Meta(description="User name at the sentinels; empty is the default user.")] = ""
    sentinel_password: Annotated[
        Password, Meta(description="Password at the sentinels, apart from that of the servers.")
    ] = ""
    sentinel_password_file: PasswordFile = ""
    ca_file: Annotated[FilePath, Meta(description="Certificates to trust with TLS; empty trusts the system's.")] = ""
    cert_file: Annotated[FilePath, Meta(description="Our certificate, if the server asks for one.")] = ""
    key_file: Annotated[FilePath, Meta(description="Private key of our certificate.")] = ""
    durability: Annotated[
        Literal["required", "replicated", "any"],
        Meta(
            description="`required` refuses a server that may forget: one that evicts keys when it is full, or keeps "
            "no append-only file; `any` takes it. `replicated`, behind Sentinel, is `required`, and nothing leaves "
            "the gateway before each replica that may become the primary has it: it takes three data nodes to continue "
            "when one is lost."
        ),
    ] = "required"
    repair_reports: Annotated[
        str,
        Meta(
            description="Behind Sentinel: the folder in which `edge store repair --reports` says what it did with the "
            "store of this machine."
        ),
    ] = "/var/lib/microdcs-edge-line"
    streams: Annotated[
        Literal["own", "all"],
        Meta(
            description="`own` writes the streams that the gateway reads; `all` also those for other programs on this "
            "host: `event:receiver:list`, `event:responder:list`, `joborder:changes:_global`, entries `ResultUpdate`."
        ),
    ] = "own"

    @property
    def sentinel_login(self) -> SentinelLogin:
        """Return our login at the sentinels."""
        return SentinelLogin(self.sentinel_username, self.sentinel_password, self.sentinel_password_file)

    def conflicts(self) -> Iterator[str | Text]:
        """Yield conflicts with other keys, as `key: fault`."""
        if bool(self.cert_file) != bool(self.key_file):
            yield "cert_file, key_file: the one needs the other"
        if (self.ca_file or self.cert_file) and not self.url.startswith(("rediss:", "rediss+sentinel:")):
            yield "url: certificates are given, but only rediss: and rediss+sentinel: use them"
        if any((self.sentinel_username, self.sentinel_password)) and "+sentinel:" not in self.url:
            yield "url: a login of sentinels is given, but the address names none; expected redis+sentinel:"
        if self.durability == "replicated" and "+sentinel:" not in self.url:
            yield "durability: `replicated` needs a url with redis+sentinel:, whose replicas can take over"


class MqttSettings(Struct, frozen=True, kw_only=True):
    """`[mqtt]`: the session with the broker."""

    url: Annotated[_MqttUrl, Meta(description="The broker; empty switches MQTT off.")] = "mqtt://127.0.0.1:1883"
    client_id: Annotated[str, Meta(description="Client id; empty takes the gateway's name.")] = ""
    username: Annotated[str, Meta(description="User name; empty logs in without one.")] = ""
    password: Annotated[Password, Meta(description="Password of that user.")] = ""
    password_file: PasswordFile = ""
    ca_file: Annotated[FilePath, Meta(description="Certificates to trust; empty trusts the system's.")] = ""
    cert_file: Annotated[FilePath, Meta(description="Our certificate, if the broker asks for one.")] = ""
    key_file: Annotated[FilePath, Meta(description="Private key of our certificate.")] = ""
    broker_autosave: Annotated[
        int,
        Meta(
            ge=0,
            description="Seconds between two saves of the broker's database (mosquitto: `autosave_interval`): a broker "
            "that crashes delivers what it had delivered since then once more.",
        ),
    ] = 1_800

    def conflicts(self) -> Iterator[str | Text]:
        """Yield conflicts with other keys, as `key: fault`."""
        return broker_conflicts(self)


class EquipmentSettings(Struct, frozen=True, kw_only=True):
    """`[southbound.<name>]`: one piece of equipment and its action types; each kind adds its own keys."""

    kind: str
    type_ids: Annotated[tuple[str, ...], Meta(min_length=1, description="The `type_id`s of the actions it takes.")]
    repetition: Annotated[
        Literal["", "once", "recognisable", "repeatable"],
        Meta(description="How a start may be repeated (`equipment.md`); empty is the default of the kind."),
    ] = ""

    def conflicts(self, _settings: "Settings") -> Iterator[str | Text]:
        """Yield conflicts with other keys of this or another section, as `key: fault`."""
        return iter(())


class MqttEquipmentSettings(EquipmentSettings, frozen=True, kw_only=True):
    """`[southbound.<name>]`: one piece of equipment over MQTT and its action types."""

    kind: Annotated[Literal["mqtt"], Meta(description="Protocol.")] = "mqtt"
    topic_prefix: Annotated[Topic, Meta(description="Commands go to `{topic_prefix}/{name}/commands`.")] = (
        "app/equipment"
    )
    response_topics: Annotated[
        tuple[TopicFilter, ...], Meta(description="Further topic filters that its questions may be answered on.")
    ] = ()
    pause: Annotated[
        Literal["off", "on"],
        Meta(description="Whether it receives the phases `pause` and `resume` when its job is paused and resumed."),
    ] = "off"
    lock: Annotated[
        Literal["off", "on"],
        Meta(description="`on` publishes whether a command needs it, retained, at `{topic_prefix}/{name}/enabled`."),
    ] = "off"
    url: Annotated[_MqttUrl, Meta(description="Its broker; empty takes all keys of `[mqtt]`.")] = ""
    username: Annotated[str, Meta(description="User name at its own broker; empty logs in without one.")] = ""
    password: Annotated[Password, Meta(description="Password of that user.")] = ""
    password_file: PasswordFile = ""
    ca_file: Annotated[FilePath, Meta(description="Certificates to trust there; empty trusts the system's.")] = ""
    cert_file: Annotated[FilePath, Meta(description="Our certificate, if that broker asks for one.")] = ""
    key_file: Annotated[FilePath, Meta(description="Private key of our certificate.")] = ""

    def conflicts(self, settings: "Settings") -> Iterator[str | Text]:
        """Yield a missing broker, and conflicts in its connection."""
        yield from broker_conflicts(self)
        if not (self.url or settings.mqtt.url):
            yield "url: needed, because mqtt.url is empty"
        elif not self.url and any((self.username, self.password, self.ca_file, self.cert_file)):
            yield "url: needed, because a user or certificates are given for it"


def broker_settings(section: BrokerKeys, mqtt: MqttSettings) -> MqttSettings:
    """Return the broker of a section that may have its own, with its user and certificates."""
    own = MqttSettings(
        url=section.url,
        username=section.username,
        password=section.password,
        password_file=section.password_file,
        ca_file=section.ca_file,
        cert_file=section.cert_file,
        key_file=section.key_file,
    )
    is_url_only = own == MqttSettings(url=mqtt.url)
    return own if section.url and not is_url_only else mqtt


class RpcSettings(Struct, frozen=True, kw_only=True):
    """`[rpc]`: MessagePack-RPC for sidecars."""

    listen: Annotated[
        str,
        Meta(
            description="Where it listens: `tcp://127.0.0.1:5005` for this host only, `tls://0.0.0.0:5005` for clients "
            "with a certificate, `unix:///run/microdcs-edge/rpc.sock` for users of its group; empty switches it off.",
            extra={"schemes": ("tcp", "tls", "unix")},
        ),
    ] = ""
    cert_file: Annotated[FilePath, Meta(description="Our certificate, for `tls:`.")] = ""
    key_file: Annotated[FilePath, Meta(description="Private key of our certificate.")] = ""
    ca_file: Annotated[FilePath, Meta(description="Certificates that vouch for clients.")] = ""

    def conflicts(self) -> Iterator[str | Text]:
        """Yield missing access control, and conflicts with the scheme of `listen`."""
        try:
            parts = urlsplit(self.listen)
            host, port = parts.hostname or "", parts.port
        except ValueError:  # reported when the key was read
            return
        files = {"cert_file": self.cert_file, "key_file": self.key_file, "ca_file": self.ca_file}
        match parts.scheme:
            case "tls":
                yield from (
                    Text.of("{key}: needed, because listen is tls:", key=key) for key, file in files.items() if not file
                )
            case "tcp" if host and not is_loopback(host):
                yield (
                    "listen: with tcp: every host of the network could start jobs and read the messages; "
                    "expected a loopback address, or tls: with certificates"
                )
            case _:
                pass
        if parts.scheme != "tls" and any(files.values()):
            yield "listen: certificates are given, but only tls: uses them"
        if parts.scheme in {"tcp", "tls"} and host and not port:
            yield Text.of("listen: expected a port, as in {scheme}://127.0.0.1:5005", scheme=parts.scheme)


class MetricsSettings(Struct, frozen=True, kw_only=True):
    """`[metrics]`: the endpoint for monitoring."""

    listen: Annotated[
        str,
        Meta(
            description="Address for Prometheus, on this host only, as in `127.0.0.1:9464`; empty switches it off.",
            pattern=r"^$|^[^\s/@]+:\d{1,5}$",
            extra={"expected": "a loopback address and a port, as in 127.0.0.1:9464"},
        ),
    ] = ""

    def conflicts(self) -> Iterator[str | Text]:
        """Yield unwanted access by other hosts."""
        try:
            parts = urlsplit(f"//{self.listen}")
            host, _ = parts.hostname or "", parts.port
        except ValueError as error:
            yield Text.of("listen: {reason}", reason=error)
            return
        if self.listen and not is_loopback(host):
            yield (
                "listen: every host of the network could read it; expected a loopback address: "
                "a collector or a proxy on this host can pass it on"
            )


class LoggingSettings(Struct, frozen=True, kw_only=True):
    """`[logging]`: level and format of the log."""

    level: Annotated[Literal["debug", "info", "warning", "error"], Meta(description="Lowest level that is logged.")] = (
        "info"
    )
    format: Annotated[
        Literal["auto", "console", "json", "journal"],
        Meta(description="`auto` is the journal under systemd, lines for people on a terminal, else JSON."),
    ] = "auto"


class FeatureSettings(Struct, frozen=True, kw_only=True):
    """The section of a feature, with what the core asks of each of them."""

    def conflicts(self, _settings: "Settings") -> Iterator[str | Text]:
        """Yield conflicts with other keys of this or another section, as `key: fault`."""
        return iter(())

    @property
    def is_on(self) -> bool:
        """Whether it switches its feature on."""
        return False

    @property
    def component_labels(self) -> Mapping[str, str]:
        """The labels of this component, to list and to address it by."""
        return {}

    @property
    def results_folder(self) -> str:
        """The folder of the files of results; empty if none are kept."""
        return ""

    @property
    def certificate_hosts(self) -> tuple[str, ...]:
        """The hosts at which the feature listens with the certificate of the OPC UA server."""
        return ()


_Feature = TypeVar("_Feature", bound=FeatureSettings)


class Settings(Struct, frozen=True, kw_only=True):
    """All settings, parsed once; an adapter receives only its own section."""

    gateway: GatewaySettings = GatewaySettings()
    redis: RedisSettings = RedisSettings()
    mqtt: MqttSettings = MqttSettings()
    northbound: NorthboundSettings = NorthboundSettings()
    southbound: Mapping[str, EquipmentSettings] = msgspec.field(default_factory=dict)
    opcua: OpcuaSettings = OpcuaSettings()
    users: UsersSettings = UsersSettings()
    station: StationFilesSettings = StationFilesSettings()
    rpc: RpcSettings = RpcSettings()
    retention: RetentionSettings = RetentionSettings()
    metrics: MetricsSettings = MetricsSettings()
    maintenance: MaintenanceSettings = MaintenanceSettings()
    operations: OperationsSettings = OperationsSettings()
    logging: LoggingSettings = LoggingSettings()
    sections: Mapping[str, FeatureSettings] = msgspec.field(default_factory=dict)
    """The sections of features that are given, by name, as in `flows` or `source.line`."""

    def section(self, settings: type[_Feature]) -> _Feature:
        """Return the section of a feature; its default values if it is not given."""
        return (
            next((section for section in self.sections.values() if isinstance(section, settings)), None) or settings()
        )

    def named(self, settings: type[_Feature]) -> Mapping[str, _Feature]:
        """Return the sections below one of a feature by their names, as the `line` of `[source.line]`."""
        found = ((name, section) for name, section in self.sections.items() if isinstance(section, settings))
        return {name.partition(".")[2]: feature for name, feature in found}

    def is_on(self, section: str) -> bool:
        """Return whether a section of a feature switches it on."""
        return section in self.sections and self.sections[section].is_on

    def is_off(self, section: str) -> bool:
        """Return whether a section of a feature is given and switches it off."""
        return section in self.sections and not self.sections[section].is_on

    @property
    def users_file(self) -> str:
        """The path of the user file."""
        return self.users.file or self.opcua.users_file

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of this component."""
        return {name: label for section in self.sections.values() for name, label in section.component_labels.items()}

    @property
    def results_folder(self) -> str:
        """The folder of the files of results; empty if none are kept."""
        return next((section.results_folder for section in self.sections.values() if section.results_folder), "")

    @property
    def tls_files(self) -> Mapping[str, Path]:
        """The files of certificates and keys by section and key, as in `mqtt.ca_file`."""
        sections = {"redis": self.redis, "mqtt": self.mqtt, "rpc": self.rpc, **self.sections}
        sections |= {f"southbound.{name}": section for name, section in self.southbound.items()}
        return {
            f"{name}.{key}": Path(path)
            for name, section in sections.items()
            for key in ("ca_file", "cert_file", "key_file")
            if (path := getattr(section, key, ""))
        }

    @property
    def certificate_hosts(self) -> tuple[str, ...]:
        """The hosts at which others listen with the certificate of the OPC UA server."""
        return tuple(host for section in self.sections.values() for host in section.certificate_hosts)


class Section(Struct, frozen=True):
    """A section of the settings file, with the type of its keys."""

    keys: type[Struct]
    after: str = ""
    """The section of a feature follows this one in reports and on pages; else it is the last."""
    is_named: bool = False
    """Whether each name below it is a section of its own: `[southbound.wrench]`."""
    kinds: Mapping[str, type[Struct] | str] = {}
    """The type of its keys, or its location as `module:name`, for each value of `kind`."""

    def keys_of(self, kind: str) -> type[Struct]:
        """Return the type of the keys of a kind."""
        keys = self.kinds[kind]
        return pkgutil.resolve_name(keys) if isinstance(keys, str) else keys


SECTIONS: Mapping[str, Section] = {
    "gateway": Section(GatewaySettings),
    "redis": Section(RedisSettings),
    "mqtt": Section(MqttSettings),
    "northbound": Section(NorthboundSettings),
    "southbound": Section(MqttEquipmentSettings, is_named=True),
    "opcua": Section(OpcuaSettings),
    "users": Section(UsersSettings),
    "station": Section(StationFilesSettings),
    "rpc": Section(RpcSettings),
    "retention": Section(RetentionSettings),
    "metrics": Section(MetricsSettings),
    "maintenance": Section(MaintenanceSettings),
    "operations": Section(OperationsSettings),
    "logging": Section(LoggingSettings),
}
"""The sections of the core."""
