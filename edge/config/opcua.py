"""`[opcua]`: the settings of the OPC UA server."""

from collections.abc import Iterator
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from edge.config.hosts import is_host, is_loopback
from edge.foundation.text import Text

_MAX_CLIENTS: Final = 8


class OpcuaSettings(Struct, frozen=True, kw_only=True):
    """`[opcua]`: the OPC UA server."""

    endpoint: Annotated[
        str, Meta(description="Where it listens; empty switches it off.", extra={"schemes": ("opc.tcp",)})
    ] = "opc.tcp://0.0.0.0:4840"
    hosts: Annotated[
        tuple[str, ...],
        Meta(
            description="Further host names and addresses by which clients reach the gateway: a name in DNS, an "
            "address of NAT, a virtual address. Its certificate names them.",
            extra={"expected": "a list of host names and addresses"},
        ),
    ] = ()
    security: Annotated[
        Literal["encrypted", "none"],
        Meta(
            description="`encrypted` requires a trusted certificate from every client; `none` also accepts "
            "clients without one: from this host as `anonymous`, from elsewhere to read only."
        ),
    ] = "encrypted"
    anonymous: Annotated[
        Literal["nobody", "observer", "operator", "engineer"],
        Meta(description="Role of a client without a user name."),
    ] = "observer"
    users_file: Annotated[
        str,
        Meta(
            description="Users and their password hashes; `[users] file` takes precedence.",
            extra={"expected": "the path of a file"},
        ),
    ] = "/etc/microdcs-edge/opcua-users"
    trusted: Annotated[
        str,
        Meta(
            description="Directory of the certificates of clients, and of authorities, that we trust.",
            extra={"expected": "the path of a directory"},
        ),
    ] = "/etc/microdcs-edge/opcua-trusted"
    trusted_users: Annotated[
        str,
        Meta(
            description="Directory of the certificates of users, and of authorities, that we trust; empty: users log "
            "in with passwords only.",
        ),
    ] = ""
    revocation_lists: Annotated[
        Literal["optional", "required"],
        Meta(description="`required`: refuses a certificate whose authority has no current revocation list."),
    ] = "optional"
    security_admins: Annotated[
        tuple[str, ...],
        Meta(
            description="Users with the role engineer who manage certificates and trust lists over OPC UA (GDS push); "
            "an empty list: no client does.",
            extra={"expected": "a list of user names"},
        ),
    ] = ()
    pki: Annotated[
        str,
        Meta(
            description="Directory of our own certificate, its key, and rejected certificates.",
            extra={"expected": "the path of a directory"},
        ),
    ] = "/var/lib/microdcs-edge/pki"
    nodesets: Annotated[
        str,
        Meta(
            description="Directory of the prepared node sets; empty takes those installed with the program.",
            extra={"must_be": "directory"},
        ),
    ] = ""
    discovery_server: Annotated[
        str,
        Meta(
            description="Discovery server at which this one registers, as in `opc.tcp://lds:4840`; empty for none. "
            "Its certificate belongs into `trusted`.",
            extra={"schemes": ("opc.tcp",)},
        ),
    ] = ""
    advertise: Annotated[
        bool,
        Meta(
            description="Announce the server by mDNS (`_opcua-tcp._tcp`): the package writes the service file of "
            "avahi-daemon while the gateway runs."
        ),
    ] = False
    reverse_connect: Annotated[
        tuple[str, ...],
        Meta(
            description="Clients that listen for this server, as in `opc.tcp://scada:4841`, at most 8: the server "
            "connects to them (reverse connect); an empty list: to none.",
            extra={"expected": "a list of URLs that begin with opc.tcp:"},
        ),
    ] = ()
    manufacturer: Annotated[str, Meta(description="Manufacturer of the station, in its Identification.")] = "unknown"
    serial_number: Annotated[str, Meta(description="Serial number of the station.")] = "unknown"
    product_instance_uri: Annotated[
        str, Meta(description="Globally unique URI of the station; empty makes one of host and gateway name.")
    ] = ""
    max_connections: Annotated[
        int,
        Meta(
            ge=1, le=1000, description="Maximum number of connections; a further client gets BadTcpNotEnoughResources."
        ),
    ] = 20
    max_sessions: Annotated[
        int,
        Meta(
            ge=1,
            le=1000,
            description="Maximum number of sessions; more than connections, as a session waits for its client "
            "to reconnect.",
        ),
    ] = 50
    max_subscriptions: Annotated[
        int, Meta(ge=1, le=10_000, description="Maximum number of subscriptions of all sessions.")
    ] = 200
    max_subscriptions_per_session: Annotated[
        int, Meta(ge=1, le=1000, description="Maximum number of subscriptions of one session.")
    ] = 20
    max_monitored_items_per_session: Annotated[
        int,
        Meta(ge=1, le=100_000, description="Maximum number of monitored items of all subscriptions of one session."),
    ] = 2000
    max_queued_values: Annotated[
        int, Meta(ge=1, le=1000, description="Maximum queue length of a monitored item of values; lists are long.")
    ] = 10
    max_queued_events: Annotated[
        int, Meta(ge=1, le=10_000, description="Maximum queue length of a monitored item of events.")
    ] = 1000
    min_publishing_interval: Annotated[
        float, Meta(ge=0.01, le=60, description="Shortest publishing interval of a subscription, in seconds.")
    ] = 0.05
    job_order_list: Annotated[
        Literal["all", "limited"],
        Meta(
            description="`limited`: JobOrderList and JobOrderResponseList hold MaxDownloadableJobOrders at most; ended "
            "jobs leave them first, and their responses are read by RequestJobResponseByJobOrderID. `all`: the limit "
            "is for jobs that have not ended."
        ),
    ] = "all"
    max_nodes_per_read: Annotated[
        int,
        Meta(
            ge=1,
            le=10_000,
            description="Maximum number of nodes of one request to read, write or register nodes, and of "
            "monitored items of one request.",
        ),
    ] = 1000
    max_nodes_per_browse: Annotated[
        int,
        Meta(ge=1, le=10_000, description="Maximum number of nodes or paths of one request to browse or translate."),
    ] = 500

    def conflicts(self) -> Iterator[str | Text]:
        """Yield limits that contradict each other, and hosts and addresses that cannot be used."""
        yield from _client_faults(self.reverse_connect)
        yield from (
            Text.of("hosts: {host!r} is neither a host name nor an address", host=host)
            for host in self.hosts
            if not is_host(host)
        )
        if self.advertise:
            yield from _advertise_faults(self.endpoint)
        if self.reverse_connect and not self.endpoint:
            yield "reverse_connect: endpoint is empty, so there is no server"
        if self.max_sessions < self.max_connections:
            yield (
                Text.of(
                    "max_sessions: expected at least max_connections = {max_connections}, as each connection "
                    "has a session, got {max_sessions}",
                    max_connections=self.max_connections,
                    max_sessions=self.max_sessions,
                )
            )
        if self.max_subscriptions < self.max_subscriptions_per_session:
            yield (
                Text.of(
                    "max_subscriptions: expected at least max_subscriptions_per_session = "
                    "{max_subscriptions_per_session}, got {max_subscriptions}",
                    max_subscriptions_per_session=self.max_subscriptions_per_session,
                    max_subscriptions=self.max_subscriptions,
                )
            )


def _advertise_faults(endpoint: str) -> Iterator[str | Text]:
    try:
        parts = urlsplit(endpoint)
        port = parts.port
    except ValueError:  # it is reported as a fault of `endpoint`
        return
    if not parts.hostname or is_loopback(parts.hostname):
        yield "advertise: endpoint is not reachable from other hosts"
    elif port == 0:
        yield "advertise: endpoint needs a fixed port"


def _client_faults(urls: tuple[str, ...]) -> Iterator[str | Text]:
    if len(urls) > _MAX_CLIENTS:
        yield Text.of(
            "reverse_connect: expected at most {max_clients} clients, got {count}",
            max_clients=_MAX_CLIENTS,
            count=len(urls),
        )
    for url in urls:
        try:
            parts = urlsplit(url)
            is_usable = parts.scheme == "opc.tcp" and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_usable = False
        if not is_usable:
            yield Text.of("reverse_connect: expected a URL as opc.tcp://scada:4841, got {url}", url=url)
    if len(set(urls)) < len(urls):
        yield "reverse_connect: a client is named twice"
