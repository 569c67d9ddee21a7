"""`[web]`: the station page and its HTTP API."""

from collections.abc import Iterator
from ipaddress import ip_network
from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta

from edge.config.hosts import is_loopback
from edge.config.sections import FeatureSettings, Section, Settings
from edge.features.page.panels import Panels, target_px
from edge.foundation.text import Text

_TLS = "tls://"
_File = Annotated[str, Meta(extra={"must_be": "file"})]


class WebSettings(FeatureSettings, frozen=True, kw_only=True):
    """`[web]`: the station page and its HTTP API."""

    listen: Annotated[
        str,
        Meta(
            description="Where it listens: `127.0.0.1:8080` for browsers on this host, `tls://0.0.0.0:8443` for those "
            "of the network; empty switches it off.",
            pattern=r"^$|^(tls://)?[^\s/@]+:\d{1,5}$",
            extra={"expected": "an address and a port, as in 127.0.0.1:8080 or tls://0.0.0.0:8443"},
        ),
    ] = ""
    cert_file: Annotated[
        _File, Meta(description="Our certificate, for `tls:`; empty takes that of the OPC UA server.")
    ] = ""
    key_file: Annotated[_File, Meta(description="Private key of our certificate.")] = ""
    kiosk: Annotated[
        Literal["off", "on"],
        Meta(description="`on` shows the page without login to browsers on this host, as observer."),
    ] = "off"
    idle: Annotated[
        int, Meta(ge=60, le=86_400, description="Seconds without a request of the person after which a login ends.")
    ] = 900
    panel: Annotated[
        bool,
        Meta(
            description="`true`: the browsers at `panel_addresses` are panels at the station: targets for gloves, Stop "
            "and Abort that are held, keys on the screen."
        ),
    ] = False
    panel_addresses: Annotated[
        tuple[str, ...],
        Meta(
            description="Addresses or networks of the panels, as in 192.0.2.7 or 192.0.2.0/28.",
            extra={"expected": "a list of addresses or networks"},
        ),
    ] = ("127.0.0.1", "::1")
    panel_density: Annotated[
        int, Meta(ge=60, le=500, description="Pixels of the panel per inch: a target is 12 mm high and wide.")
    ] = 133
    panel_idle: Annotated[
        int,
        Meta(ge=1, le=1440, description="Minutes without a touch after which a panel logs out and shows the station."),
    ] = 5
    reason_for: Annotated[
        tuple[Literal["stop", "abort"], ...],
        Meta(
            description="Methods for which a person at the page or over HTTP states a reason, also after *Stop* of a "
            "panel was held.",
            extra={"expected": "a list of stop, abort"},
        ),
    ] = ()
    max_connections: Annotated[
        int, Meta(ge=8, le=1000, description="Maximum number of connections; one address may have half of them.")
    ] = 400

    @property
    def is_tls(self) -> bool:
        """Whether clients connect with TLS."""
        return self.listen.startswith(_TLS)

    @property
    def shares_certificate(self) -> bool:
        """Whether the page uses the certificate of the OPC UA server."""
        return self.is_tls and not self.cert_file

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port to listen at."""
        parts = urlsplit(f"//{self.listen.removeprefix(_TLS)}")
        return parts.hostname or "", parts.port or 0

    @property
    def panels(self) -> Panels:
        """The panels of the station. Raises ValueError for a text that is not an address or a network."""
        networks = tuple(ip_network(text) for text in self.panel_addresses) if self.panel else ()
        return Panels(networks, target_px(self.panel_density), self.panel_idle * 60)

    @property
    def is_on(self) -> bool:
        """Whether the page is served."""
        return bool(self.listen)

    @property
    def certificate_hosts(self) -> tuple[str, ...]:
        """The host of the page, if it uses the certificate of the OPC UA server."""
        return (self.address[0],) if self.shares_certificate else ()

    def conflicts(self, _settings: Settings) -> Iterator[str | Text]:
        """Yield passwords without encryption, and conflicts of the certificate."""
        try:
            host, _ = self.address
        except ValueError as error:
            yield Text.of("listen: {reason}", reason=error)
            return
        try:
            _ = self.panels
        except ValueError as error:
            yield Text.of("panel_addresses: {reason}", reason=error)
        if bool(self.cert_file) != bool(self.key_file):
            yield "cert_file, key_file: the one needs the other"
        if self.is_tls or not self.listen:
            return
        if self.cert_file:
            yield "listen: certificates are given, but only tls: uses them"
        if not is_loopback(host):
            yield (
                "listen: passwords would cross the network in the clear; "
                "expected a loopback address, or tls://, as in tls://0.0.0.0:8443"
            )


SECTIONS = {"web": Section(WebSettings, after="metrics")}
