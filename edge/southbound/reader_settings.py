"""The settings of a reader of barcodes or RFID tags that sends lines."""

import re
from collections.abc import Iterator
from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta

from edge.config import EquipmentSettings, Settings
from edge.links.line_stream import BAUD_RATES


class ReaderSettings(EquipmentSettings, frozen=True, kw_only=True):
    """`[southbound.<name>]`: a reader of codes; `type_ids` has one entry, the type of its events."""

    kind: Annotated[Literal["reader"], Meta(description="How it is spoken to.")]
    url: Annotated[
        str,
        Meta(
            description="A reader that is a TCP server, as in `tcp://192.168.1.40:2001`, or the path of a serial port, "
            "as in `serial:///dev/ttyUSB0`.",
            extra={"schemes": ("tcp", "serial")},
        ),
    ]
    baud: Annotated[int, Meta(description="Rate of a serial port in bit/s (8 data bits, no parity, 1 stop bit).")] = (
        9600
    )
    framing: Annotated[
        Literal["lines", "stx"],
        Meta(description="`lines` end with CR, LF or NUL; `stx` takes what stands between STX and ETX."),
    ] = "lines"
    pattern: Annotated[
        str,
        Meta(description="Regular expression that a whole code matches; its named groups become data of the event."),
    ] = ""
    dedupe: Annotated[float, Meta(ge=0, description="Seconds for which the same code again is the same reading.")] = 2.0
    starts: Annotated[
        Literal["", "order", "work_master"],
        Meta(
            description="What a code does that no job waits for: `order` starts the stored job order with this id; "
            "`work_master` stores and starts a job with this id; empty does nothing."
        ),
    ] = ""
    work_master: Annotated[str, Meta(description="The Work Master of such a job.")] = ""
    scope: Annotated[str, Meta(description="Scope of its events and jobs; empty takes the first of the gateway.")] = ""

    def conflicts(self, settings: Settings) -> Iterator[str]:
        """Yield keys that cannot work, alone or together."""
        if len(self.type_ids) != 1:
            yield f"type_ids: expected one entry, the type of its events, not {len(self.type_ids)}"
        if self.baud not in BAUD_RATES:
            yield f"baud: expected one of {', '.join(map(str, BAUD_RATES))}"
        if (self.starts == "work_master") != bool(self.work_master):
            yield 'work_master: belongs to starts = "work_master"'
        if self.scope and self.scope not in settings.gateway.scopes:
            yield f"scope: {self.scope} is none of gateway.scopes: {', '.join(settings.gateway.scopes)}"
        try:
            re.compile(self.pattern)
        except re.error as error:
            yield f"pattern: {error}"
        yield from self._address_conflicts()

    def _address_conflicts(self) -> Iterator[str]:
        try:
            parts = urlsplit(self.url)
            port = parts.port
        except ValueError:  # reported when the key was read
            return
        if parts.scheme == "tcp" and not port:
            yield "url: expected a host and a port, as in tcp://192.168.1.40:2001"
        if parts.scheme == "serial" and not parts.path.startswith("/dev/"):
            yield "url: expected the path of a port, as in serial:///dev/ttyUSB0"
