"""The settings of a reader of barcodes or RFID tags that sends lines."""

import re
from collections.abc import Collection, Iterator
from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta

from edge.config import EquipmentSettings, Settings
from edge.equipment.gs1 import application_identifiers
from edge.features.readers.line_stream import BAUD_RATES
from edge.foundation.text import Text

GS1_MEMBER = "gs1_"
_A_BAUD_RATE = Text.of("one of {choices}", choices=", ".join(map(str, BAUD_RATES)))
"""The prefix of an Application Identifier in the data of a code: `gs1_21`."""


class ReaderSettings(EquipmentSettings, frozen=True, kw_only=True):
    """`[southbound.<name>]`: a reader of codes; `type_ids` has one entry, the type of its events."""

    kind: Annotated[Literal["reader"], Meta(description="Protocol.")]
    url: Annotated[
        str,
        Meta(
            description="A reader that is a TCP server, as in `tcp://192.168.1.40:2001`, or the path of a serial port, "
            "as in `serial:///dev/ttyUSB0`.",
            extra={"schemes": ("tcp", "serial")},
        ),
    ]
    baud: Annotated[
        int,
        Meta(
            description="Rate of a serial port in bit/s (8 data bits, no parity, 1 stop bit).",
            extra={"expected": _A_BAUD_RATE},
        ),
    ] = 9600
    keepalive: Annotated[
        int,
        Meta(
            ge=0,
            le=3600,
            description="Seconds without an answer to the probes of TCP after which the gateway reconnects; 0 sends no "
            "probes.",
        ),
    ] = 30
    silence: Annotated[
        float,
        Meta(
            ge=0,
            description="Seconds without a byte after which the gateway reconnects: more than the interval of the "
            "reader's heartbeats; 0 means no limit.",
        ),
    ] = 0.0
    ignore: Annotated[
        tuple[str, ...], Meta(description="Lines that are not codes, such as a heartbeat of the reader or `NOREAD`.")
    ] = ()
    encoding: Annotated[
        Literal["utf-8", "latin-1", "cp1252"],
        Meta(description="Encoding of its codes; one that it cannot decode is refused (`unreadable`)."),
    ] = "utf-8"
    framing: Annotated[
        Literal["lines", "stx"],
        Meta(description="`lines` end with CR, LF or NUL; `stx` takes the text between STX and ETX."),
    ] = "lines"
    gap: Annotated[
        float,
        Meta(
            ge=0,
            description="Seconds without a byte that end a code of a reader which sends no line end; 0 refuses such a "
            "code (`unreadable`). On a slow network a gap may cut a code in two: prefer a line end.",
        ),
    ] = 0.0
    pattern: Annotated[
        str,
        Meta(description="Regular expression that a whole code matches; its named groups become data of the event."),
    ] = ""
    gs1: Annotated[
        Literal["off", "auto", "required"],
        Meta(
            description="`auto` adds the Application Identifiers of a GS1 code to the data of the event, as in "
            "`gs1_21`; `required` also refuses every other code (`unreadable`)."
        ),
    ] = "off"
    dedupe: Annotated[float, Meta(ge=0, description="Seconds for which the same code again is the same reading.")] = 2.0
    starts: Annotated[
        Literal["", "order", "work_master"],
        Meta(
            description="Effect of a code that no job waits for: `order` starts the stored job order with this id; "
            "`work_master` stores and starts a job with this id; empty does nothing."
        ),
    ] = ""
    job_id: Annotated[
        str,
        Meta(
            description="The member of the data that is the JobOrderID: a named group of `pattern`, or an Application "
            "Identifier as `gs1_21`; empty takes the whole code."
        ),
    ] = ""
    work_master: Annotated[str, Meta(description="The Work Master of such a job.")] = ""
    scope: Annotated[str, Meta(description="Scope of its events and jobs; empty takes the first of the gateway.")] = ""

    def conflicts(self, settings: Settings) -> Iterator[str | Text]:
        """Yield keys that cannot work, alone or together."""
        if len(self.type_ids) != 1:
            yield Text.of("type_ids: expected one entry, the type of its events, not {count}", count=len(self.type_ids))
        if self.baud not in BAUD_RATES:
            yield Text.of("baud: expected {expected}", expected=_A_BAUD_RATE)
        if (self.starts == "work_master") != bool(self.work_master):
            yield 'work_master: belongs to starts = "work_master"'
        if self.gap and self.framing == "stx":
            yield 'gap: belongs to framing = "lines"'
        if self.scope and self.scope not in settings.gateway.scopes:
            yield Text.of(
                "scope: {scope} is none of gateway.scopes: {scopes}",
                scope=self.scope,
                scopes=", ".join(settings.gateway.scopes),
            )
        try:
            groups = re.compile(self.pattern).groupindex
        except re.error as error:
            yield Text.of("pattern: {reason}", reason=error)
        else:
            yield from self._job_id_conflicts(groups)
        yield from self._address_conflicts()

    def _job_id_conflicts(self, groups: Collection[str]) -> Iterator[str | Text]:
        identifiers = () if self.gs1 == "off" else application_identifiers()
        is_identifier = self.job_id.startswith(GS1_MEMBER) and self.job_id.removeprefix(GS1_MEMBER) in identifiers
        if self.job_id and not self.starts:
            yield "job_id: belongs to starts"
        elif self.job_id and not is_identifier and self.job_id not in groups:
            yield 'job_id: expected a named group of pattern, or with gs1 = "auto" an identifier such as gs1_21'

    def _address_conflicts(self) -> Iterator[str | Text]:
        try:
            parts = urlsplit(self.url)
            port = parts.port
        except ValueError:  # reported when the key was read
            return
        if parts.scheme == "tcp" and not port:
            yield "url: expected a host and a port, as in tcp://192.168.1.40:2001"
        if parts.scheme == "serial" and not parts.path.startswith("/dev/"):
            yield "url: expected the path of a port, as in serial:///dev/ttyUSB0"
