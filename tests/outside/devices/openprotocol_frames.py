"""Frames of Open Protocol, written from the published specification (release 2.8.0); knows nothing of the product.

A table of fields is a line of `name:width`, with `t` after the width of a text. Numbers are padded with zeros on the
left, texts with blanks on the right; a value that is not supported is blanks (chapter 2.3).
"""

import struct
from collections.abc import Iterator, Mapping, Sequence

HEADER = 20
LONGEST = 9999

_STATES = "torque_ok:1 angle_ok:1 rundown_ok:1 current_ok:1 selftap_ok:1 prevail_ok:1 prevail_compensate_ok:1 errors:10"
_TORQUES = "torque_min:6 torque_max:6 torque_target:6 torque:6"
_ANGLES = "angle_min:5 angle_max:5 angle_target:5 angle:5"

STARTED = {
    1: "cell:4 channel:2 name:25t",
    2: "supplier:3t",
    3: "protocol:19t software:19t tool_software:19t",
    4: "rbu:24t serial:10t",
    5: "system:3 subsystem:3",
    6: "sequence:1 linking:1 station:10 station_name:25t client:1",
}
"""MID 0002: what each revision adds (tables 11 to 16)."""

RESULT_1 = (
    "cell:4 channel:2 name:25t vin:25t job:2 pset:3 batch_size:4 batch_counter:4 ok:1 torque_ok:1 angle_ok:1 "
    f"{_TORQUES} {_ANGLES} time:19t changed:19t batch_ok:1 number:10"
)
RESULT_2 = (
    "cell:4 channel:2 name:25t vin:25t job:4 pset:3 strategy:2 options:5 batch_size:4 batch_counter:4 ok:1 batch_ok:1 "
    f"{_STATES} {_TORQUES} {_ANGLES} rundown_min:5 rundown_max:5 rundown:5 current_min:3 current_max:3 current:3 "
    "selftap_min:6 selftap_max:6 selftap:6 prevail_min:6 prevail_max:6 prevail:6 number:10 job_sequence:5 sync:5 "
    "tool:14t time:19t changed:19t"
)
RESULT_LATER = {
    3: "pset_name:25t unit:1 kind:2",
    4: "part_2:25t part_3:25t part_4:25t",
    5: "customer:4t",
    6: "prevail_compensate:6 errors_2:10",
}
RESULT_LIGHT = (
    "vin:25t job:2 pset:3 batch_size:4 batch_counter:4 batch_ok:1 ok:1 torque_ok:1 angle_ok:1 torque:6 angle:5 "
    "time:19t changed:19t number:10"
)
"""MID 0061, revision 999: without parameter ids (table 83)."""
OLD_1 = "number:10 vin:25t pset:3 batch_counter:4 ok:1 torque_ok:1 angle_ok:1 torque:6 angle:5 time:19t batch_ok:1"
OLD_2 = (
    "number:10 vin:25t job:4 pset:3 strategy:2 options:5 batch_size:4 batch_counter:4 ok:1 batch_ok:1 "
    f"{_STATES} torque:6 angle:5 rundown:5 current:3 selftap:6 prevail:6 job_sequence:5 sync:5 tool:14t time:19t"
)
OLD_LATER = {
    3: "unit:1 kind:2",
    4: "part_2:25t part_3:25t part_4:25t",
    5: "customer:4t",
    6: "prevail_compensate:6 errors_2:10",
}
PARAMETER_SET = (
    "pset:3 name:25t direction:1 batch_size:2 torque_min:6 torque_max:6 torque_target:6 angle_min:5 angle_max:5 "
    "angle_target:5"
)
TOOL = "serial:14t tightenings:10 calibrated:19t controller:10t"
ALARM = "code:4t controller_ready:1 tool_ready:1 time:19t"
SPINDLES = (
    "spindles:2 vin:25t job:2 pset:3 batch_size:4 batch_counter:4 batch_ok:1 torque_min:6 torque_max:6 torque_target:6 "
    "angle_min:5 angle_max:5 angle_target:5 changed:19t time:19t number:5 ok:1"
)
"""MID 0101 before its records (table 105)."""

Values = Mapping[str, int | str]


def frame(
    mid: int, data: bytes | str = b"", revision: int = 1, sequence: int = 0, *, ends: bool = True, station: int = 0
) -> bytes:
    """Return one message; its end is a NUL, but after binary data (chapter 2.4.1)."""
    raw = data.encode("latin-1") if isinstance(data, str) else data
    shown = f"{sequence:02d}" if sequence else "  "
    origin = f"{station:02d}" if station else "  "
    header = f"{HEADER + len(raw):04d}{mid:04d}{revision:03d} {origin}  {shown}  "
    return header.encode() + raw + (b"\0" if ends else b"")


def fields(table: str, values: Values, *, first: int | None = 1) -> str:
    """Return the fields of a table; `first` is the parameter id of the first one, None without ids."""
    parts = []
    for place, (name, width, is_text) in enumerate(columns(table)):
        value = values.get(name, "")
        text = f"{value:0{width}d}" if isinstance(value, int) and not is_text else str(value).ljust(width)
        if len(text) != width:
            raise ValueError(f"{name}: {text!r} is not {width} characters long")
        parts.append(text if first is None else f"{first + place:02d}{text}")
    return "".join(parts)


def columns(table: str) -> Iterator[tuple[str, int, bool]]:
    """Yield name, width, and whether it is a text, of each field."""
    for column in table.split():
        name, _, width = column.partition(":")
        yield name, int(width.rstrip("t")), width.endswith("t")


def started(revision: int, values: Values) -> str:
    """Return the data of MID 0002."""
    return _growing({1: STARTED[1], **{n: STARTED[n] for n in range(2, 7)}}, revision, values)


def result(revision: int, values: Values) -> str:
    """Return the data of MID 0061."""
    if revision == 999:
        return fields(RESULT_LIGHT, values, first=None)
    if revision == 1:
        return fields(RESULT_1, values)
    return _growing({2: RESULT_2, **RESULT_LATER}, revision, values)


def old_result(revision: int, values: Values) -> str:
    """Return the data of MID 0065."""
    return fields(OLD_1, values) if revision == 1 else _growing({2: OLD_2, **OLD_LATER}, revision, values)


def spindles(values: Values, records: Sequence[tuple[int, int, int, int]]) -> str:
    """Return the data of MID 0101: for each spindle its number, its status, torque in 0.01 N·m and angle."""
    head = fields(SPINDLES, {**values, "spindles": len(records), "number": int(values["number"]) % 65536})
    return f"{head}18" + "".join(f"{n:02d}01{ok}{ok}{torque:06d}{ok}{angle:05d}" for n, ok, torque, angle in records)


def trace(number: int, time: str, kind: int, samples: Sequence[int]) -> bytes:
    """Return the data of MID 0900 (table 157): one curve with the coefficient 100, a sample each millisecond."""
    unit = {1: "050", 2: "001"}[kind]
    coefficient = "02213" + "003" + "01" + "000" + "0000" + "100"
    resolution = "00000" + f"{len(samples) - 1:05d}" + "001" + "01" + "202" + "1"
    text = f"{number:010d}{time}000{kind:02d}01{unit}001{coefficient}001{resolution}{len(samples):05d}"
    return text.encode() + b"\0" + struct.pack(f">{len(samples)}h", *samples)


def plot(number: int, time: str, low: int, high: int) -> str:
    """Return the data of MID 0901 (table 160) with the limits of torque in 0.01 N·m."""
    limits = [("02003", low), ("02002", high)]
    texts = [(pid, f"{value / 100:.2f}") for pid, value in limits]
    return f"{number:010d}{time}{len(texts):03d}" + "".join(f"{pid}{len(t):03d}030010000{t}" for pid, t in texts)


def split(buffer: bytearray) -> Iterator[bytes]:
    """Yield each complete message and remove it; raises ValueError for what the specification does not allow."""
    while len(buffer) >= HEADER:
        digits = bytes(buffer[:4])
        if not digits.isdigit() or not HEADER <= int(digits) <= LONGEST:
            raise ValueError(f"the length {digits!r} is not four digits from 0020 to 9999")
        length = int(digits)
        if len(buffer) <= length:
            return
        if buffer[length]:
            raise ValueError(f"the message {bytes(buffer[:HEADER])!r} does not end with a NUL")
        message = bytes(buffer[:length])
        del buffer[: length + 1]
        yield message


def _growing(tables: Mapping[int, str], revision: int, values: Values) -> str:
    """Return the fields of the tables up to a revision; their parameter ids continue."""
    return fields(" ".join(table for n, table in tables.items() if n <= revision), values)
