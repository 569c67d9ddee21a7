"""The trace messages of Open Protocol (MID 0900, 0901).

A curve is text fields, a NUL, and samples of two bytes; the parameters of its plot are text fields.
"""

import math
import struct
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from edge.features.openprotocol.protocol.fields import DataField, FieldKind, decode_data, encode_data
from edge.foundation.errors import Refused
from edge.foundation.text import Text

ANGLE, TORQUE = 1, 2
KINDS = MappingProxyType({ANGLE: "Angle", TORQUE: "Torque", 3: "Current", 4: "Gradient", 5: "Stroke", 6: "Force"})
"""The name of each type of trace."""

_TEXT = FieldKind.TEXT
_ONLY_NEW = "0"
_UNITS = MappingProxyType(
    {"001": "N·m", "002": "ft·lbf", "006": "in·lbf", "050": "°", "300": "N", "301": "kN", "351": "mm"}
)
"""The units of traces, as table 162 of the specification numbers them."""
_MILLISECONDS = MappingProxyType({"200": 1000.0, "201": 60_000.0, "202": 1.0, "203": 3_600_000.0})
"""The units of the time between two samples."""
_DIVISOR, _FACTOR = "02213", "02214"
"""The parameters that scale the samples."""
_PARAMETER = (
    DataField("id", 5, _TEXT),
    DataField("length", 3),
    DataField("type", 2, _TEXT),
    DataField("unit", 3, _TEXT),
    DataField("step", 4, _TEXT),
)
_RESOLUTION = (
    DataField("first", 5),
    DataField("last", 5),
    DataField("length", 3),
    DataField("type", 2, _TEXT),
    DataField("unit", 3, _TEXT),
)
_HEAD = (DataField("result", 10), DataField("time", 19, FieldKind.DATE), DataField("parameters", 3))
_KIND = (
    DataField("kind", 2),
    DataField("transducer", 2, _TEXT),
    DataField("unit", 3, _TEXT),
    DataField("parameters", 3),
)
_RESOLUTIONS = (DataField("count", 3),)
_SAMPLES = (DataField("samples", 5),)


class CurveMessage(Struct, frozen=True):
    """One curve of a result; `interval_ms` is the time between two samples, None where it is not constant."""

    result: int
    time: datetime | None
    kind: int
    unit: str
    values: Sequence[float]
    interval_ms: float | None

    @property
    def name(self) -> str:
        """What was measured."""
        return KINDS.get(self.kind, f"trace {self.kind}")


def subscription_of(kinds: Sequence[int]) -> bytes:
    """Return the data of MID 0008 that subscribes to new traces of these kinds (5.27.1.1 of the specification).

    Time stamp and index of old traces are blank.
    """
    extra = f"{_ONLY_NEW}{' ' * 29}{len(kinds):02d}{''.join(f'{kind:03d}' for kind in kinds)}"
    return f"0900001{len(extra):02d}{extra}".encode()


def parse_curve(data: bytes) -> CurveMessage:
    """Return the curve of a message. Raises Refused(`unreadable`) with the field that is wrong."""
    reader = _Reader(data)
    head = reader.read(_HEAD)
    reader.parameters(head["parameters"])
    kind = reader.read(_KIND)
    scale = _scale_of(reader.parameters(kind["parameters"]))
    count = reader.read(_RESOLUTIONS)["count"] or 0
    resolutions = [reader.resolution() for _ in range(count)]
    samples = reader.samples(reader.read(_SAMPLES)["samples"] or 0)
    interval = resolutions[0] if len(set(resolutions)) == 1 else None
    unit = _UNITS.get(kind["unit"].zfill(3), f"unit {kind['unit']}")
    return CurveMessage(
        head["result"] or 0, head["time"], kind["kind"] or 0, unit, [sample * scale for sample in samples], interval
    )


def plot_subscription() -> bytes:
    """Return the data of MID 0008 that subscribes to the parameters of plots."""
    return b"090100100"


def parse_plot(data: bytes) -> dict[str, Any]:
    """Return the `result` of a plot, and its `plot` parameters by their ids. Raises Refused(`unreadable`)."""
    reader = _Reader(data)
    head = reader.read(_HEAD)
    return {"result": head["result"] or 0, "plot": reader.parameters(head["parameters"])}


def encode_plot(result: int, time: datetime, parameters: Mapping[str, str]) -> bytes:
    """Return the data of a message with the parameters of a plot, by their ids."""
    head = encode_data(_HEAD, {"result": result, "time": time, "parameters": len(parameters)})
    return head + b"".join(
        encode_data(_PARAMETER, {"id": parameter, "length": len(text), "type": "03", "unit": "001", "step": "0000"})
        + text.encode()
        for parameter, text in parameters.items()
    )


def encode_curve(
    result: int, time: datetime, kind: int, unit: str, samples: Sequence[int], *, divisor: int, interval_ms: int
) -> bytes:
    """Return the data of a message with these samples, as a controller sends it."""
    scale, step_text = str(divisor), str(interval_ms)
    return b"".join(
        (
            encode_data(_HEAD, {"result": result, "time": time, "parameters": 0}),
            encode_data(_KIND, {"kind": kind, "transducer": "01", "unit": unit, "parameters": 1}),
            encode_data(
                _PARAMETER, {"id": _DIVISOR, "length": len(scale), "type": "01", "unit": "000", "step": "0000"}
            ),
            scale.encode(),
            encode_data(_RESOLUTIONS, {"count": 1}),
            encode_data(
                _RESOLUTION, {"first": 1, "last": len(samples), "length": len(step_text), "type": "01", "unit": "202"}
            ),
            step_text.encode(),
            encode_data(_SAMPLES, {"samples": len(samples)}),
            b"\0",
            struct.pack(f">{len(samples)}h", *samples),
        )
    )


class _Reader:
    """Reads the fields one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def read(self, layout: tuple[DataField, ...]) -> dict[str, Any]:
        found = decode_data(layout, self._data[self._at :])
        self._at += sum(field.width for field in layout)
        return found

    def parameters(self, count: int | None) -> dict[str, str]:
        found = {}
        for _ in range(count or 0):
            field = self.read(_PARAMETER)
            found[field["id"]] = self._text(field["length"] or 0)
        return found

    def resolution(self) -> float | None:
        field = self.read(_RESOLUTION)
        factor, value = _MILLISECONDS.get(field["unit"]), self._text(field["length"] or 0)
        return None if factor is None else _number(Text.of("time between samples"), value) * factor

    def samples(self, count: int) -> Sequence[int]:
        if self._data[self._at : self._at + 1] != b"\0":
            raise Refused("unreadable", "samples: the NUL before them is missing")
        if count < 0:
            raise Refused("unreadable", Text.of("samples: {count} is not a number of them", count=count))
        raw = self._data[self._at + 1 : self._at + 1 + 2 * count]
        if len(raw) < 2 * count:
            raise Refused(
                "unreadable",
                Text.of("samples: {count} are announced, {count2} are there", count=count, count2=len(raw) // 2),
            )
        return struct.unpack(f">{count}h", raw)

    def _text(self, length: int) -> str:
        text = self._data[self._at : self._at + length].decode("latin-1")
        if length < 0 or len(text) < length:
            raise Refused(
                "unreadable",
                Text.of(
                    "a value: {length} characters are announced, {count} are there", length=length, count=len(text)
                ),
            )
        self._at += length
        return text.strip(" \0")


def _scale_of(parameters: dict[str, str]) -> float:
    if divisor := parameters.get(_DIVISOR):
        return 1 / (_number(Text.of("divisor of the samples"), divisor) or 1.0)
    factor = parameters.get(_FACTOR)
    return _number(Text.of("factor of the samples"), factor) if factor else 1.0


def _number(what: Text, text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        raise Refused(
            "unreadable", Text.of("{what}: expected a number, found {text}", what=what, text=repr(text[:20]))
        ) from None
    if not math.isfinite(found):
        raise Refused("unreadable", Text.of("{what}: {text} is not a number", what=what, text=repr(text[:20])))
    return found
