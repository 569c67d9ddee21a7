"""Reads recorded samples and occurrences, one JSON object a line, as trials of rules and flows take them."""

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final, Protocol, TypeAlias

import msgspec
from msgspec import Struct

CONTEXT: Final = ("process", "job", "action", "carrier", "gateway")
"""To what a sample may belong."""


class Quality(Enum):
    """The quality of a sample, in the three classes of OPC UA StatusCodes (OPC 10000-4, 7.39)."""

    GOOD = "good"
    UNCERTAIN = "uncertain"
    BAD = "bad"


class Sample(Struct, frozen=True):
    """The value of a tag at an instant, in milliseconds since the epoch; NaN and infinity may stand as values.

    `process`, `job`, `action` and `carrier` are those of a result, as far as it has them; `gateway` is the one that
    measured itself. `arrived_at` is the instant
    of its arrival where that is known: a source with a slow clock, or with a value that rarely changes, is not silent.
    A `late` one was stored by its source before: it is for the history only.
    """

    at: int
    tag: str
    value: Any
    quality: Quality = Quality.GOOD
    process: str | None = None
    job: str | None = None
    action: str | None = None
    carrier: str | None = None
    arrived_at: int = 0
    gateway: str | None = None
    late: bool = False

    @property
    def name(self) -> str:
        """Return the tag; of a gateway with its name, because each gateway of a store has the tag."""
        return self.tag if self.gateway is None else f"{self.tag}[{self.gateway}]"

    @property
    def context(self) -> dict[str, str]:
        """Return to what the sample belongs, by the names of the members of a line."""
        found = ((name, getattr(self, name)) for name in CONTEXT)
        return {name: text for name, text in found if text is not None}


class Occurrence(Struct, frozen=True):
    """An event without a value at an instant, in milliseconds since the epoch, of a job if it names one."""

    at: int
    name: str
    job: str | None
    data: Any


Line: TypeAlias = Sample | Occurrence


_DECODER: Final = msgspec.json.Decoder()


class LineError(ValueError):
    """A line that cannot be used; the message says why."""


def read_lines(lines: Iterable[str], report: Callable[[int, str], None]) -> Iterator[Line]:
    """Yield the samples and occurrences of these lines, in order of time.

    A line that is not JSON, not of this form or earlier than its predecessor is set aside: `report` gets its number,
    from 1, and the reason. Empty lines are skipped.
    """
    latest = -math.inf
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            found = parse_line(text)
        except LineError as error:
            report(number, str(error))
            continue
        if found.at < latest:
            report(number, f"at {found.at} is earlier than the line before")
            continue
        latest = found.at
        yield found


def parse_line(text: str) -> Line:
    """Parse one line; raises LineError."""
    try:
        data = _DECODER.decode(text)
    except (ValueError, RecursionError):
        data = _decode_tolerantly(text)
    if not isinstance(data, dict):
        raise LineError("a line is a JSON object")
    at = data.get("at")
    if isinstance(at, bool) or not isinstance(at, int):
        raise LineError("at is a whole number of milliseconds")
    match data:
        case {"tag": str() as tag, "value": value} if "occurrence" not in data:
            process, job, action, carrier, gateway = (_text(data, word) for word in CONTEXT)
            # Readers keep many samples of few tags.
            tag, quality = sys.intern(tag), _quality(data)
            late = data.get("late") is True
            return Sample(at, tag, value, quality, process, job, action, carrier, gateway=gateway, late=late)
        case {"occurrence": str() as name} if "tag" not in data:
            return Occurrence(at, name, _text(data, "job"), data.get("data"))
        case _:
            raise LineError("a line has a tag with its value, or an occurrence")


def _decode_tolerantly(text: str) -> Any:
    """Return the content of a text that the faster decoder refuses: it may hold NaN, infinity or half a character."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LineError(f"not JSON: {error}") from None


def _quality(data: Mapping[str, Any]) -> Quality:
    try:
        return Quality(data.get("quality", Quality.GOOD.value))
    except ValueError:
        raise LineError("quality is good, uncertain or bad") from None


def _text(data: Mapping[str, Any], member: str) -> str | None:
    text = data.get(member)
    if text is not None and not isinstance(text, str):
        raise LineError(f"{member} is a text")
    return text


class SourceKeys(Protocol):
    """The keys of an MQTT source, `[source.NAME]`, for the feature that reads its payload."""

    @property
    def topic(self) -> str:
        """The filter of its topics."""

    @property
    def tag(self) -> str:
        """The name of a tag, with `{...}` for what differs."""

    @property
    def pointer(self) -> str:
        """The JSON Pointer to the value in a payload."""

    @property
    def encoding(self) -> str:
        """How a value is encoded."""

    @property
    def device(self) -> str:
        """The device to which a sample belongs."""

    @property
    def carrier(self) -> str:
        """The carrier to which devices are bound."""
