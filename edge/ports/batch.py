"""Batches of samples and occurrences as the stream holds them: every field is text, and nothing is lost."""

import contextlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from edge.foundation.text import Text
from edge.ports.sample_lines import Line, LineError, Occurrence, Quality, Sample, parse_line

MAX_TEXT_LENGTH: Final = 4_096
MAX_NAME_LENGTH: Final = 200
BATCH_SIZE: Final = 100
"""Lines of a batch: an entry of the stream has a limited number of fields."""
_PLACED: Final = "placed"
_ENCODER: Final = msgspec.json.Encoder()
_INT64: Final = 1 << 63
_UINT64: Final = 1 << 64
_LATE_MS: Final = 60_000
EARLY_MS: Final = 1_000


class Batch(Struct, frozen=True):
    """Lines that arrived together; `producer` and `number` identify one that was appended twice.

    A batch in the commit of a decision has no producer: that commit is carried out once. `is_placed`: the instants of
    its lines were checked at their arrival.
    """

    producer: str
    number: int
    arrived_at: int
    lines: tuple[Line, ...]
    is_placed: bool = False


def split_lines(
    producer: str, number: int, arrived_at: int, lines: Sequence[Line], size: int = BATCH_SIZE
) -> Iterator[Batch]:
    """Yield lines in batches of their producer; the first one has the number."""
    for part, start in enumerate(range(0, len(lines), size)):
        yield Batch(producer, number + part, arrived_at, tuple(lines[start : start + size]), is_placed=True)


class BatchError(ValueError):
    """An entry that is not a batch; the message is the error of its decoding."""


def is_name(name: str) -> bool:
    """Return whether a text can be the name of a tag or an occurrence."""
    return bool(name) and len(name) <= MAX_NAME_LENGTH and name.isprintable()


def fault_of(line: Line) -> Text | None:
    """Return why a line cannot be taken; None when it can."""
    name = line.tag if isinstance(line, Sample) else line.name
    if not is_name(name):
        return Text.of("its name is empty, longer than {most} characters or not printable", most=MAX_NAME_LENGTH)
    if isinstance(line, Occurrence):
        return None
    match line.value:
        case None | bool() | float():
            return None
        case int(number):
            return None if -_INT64 <= number < _UINT64 else Text.of("its number has more than 64 bits")
        case str(text):
            if len(text) <= MAX_TEXT_LENGTH:
                return None
            return Text.of("its text has more than {most} characters", most=MAX_TEXT_LENGTH)
        case other:
            return Text.of("its value is not a number, text or truth value, but {type}", type=type(other).__name__)


def encode_batch(batch: Batch) -> dict[str, str]:
    """Return the fields of a batch: its facts, then each line as JSON by its number."""
    head = {"producer": batch.producer, "number": str(batch.number), "at": str(batch.arrived_at)}
    if batch.is_placed:
        head[_PLACED] = "1"
    return head | {str(number): encode_line(line) for number, line in enumerate(batch.lines)}


def encode_line(line: Line) -> str:
    """Return a line in the form of `edge rules test`; `parse_line` reads it back."""
    data: dict[str, Any]
    match line:
        case Sample(at=at, tag=tag, value=value, quality=quality):
            data = {"at": at, "tag": tag, "value": value}
            if quality is not Quality.GOOD:
                data["quality"] = quality.value
            if line.late:
                data["late"] = True
            data |= line.context
        case Occurrence(at=at, name=name, job=job, data=content):
            data = {"at": at, "occurrence": name}
            data |= {key: text for key, text in (("job", job), ("data", content)) if text is not None}
    if isinstance(line, Sample) and not (isinstance(line.value, float) and not math.isfinite(line.value)):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            return _ENCODER.encode(data).decode()
    # NaN and the infinities are not JSON for the faster encoder; data of an occurrence may hold them, too.
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def decode_batch(fields: Mapping[str, str]) -> tuple[Batch, tuple[str, ...]]:
    """Return a batch and the faults of the lines that cannot be used; the tags of such samples are uncertain.

    Raises BatchError.
    """
    try:
        producer, number, arrived_at = fields["producer"], int(fields["number"]), int(fields["at"])
    except (KeyError, ValueError) as error:
        raise BatchError(repr(error)) from None
    lines, faults = _lines(text for name, text in fields.items() if name.isdecimal())
    return Batch(producer, number, arrived_at, lines, is_placed=_PLACED in fields), faults


def _lines(texts: Iterable[str]) -> tuple[tuple[Line, ...], tuple[str, ...]]:
    lines, faults = [], []
    for text in texts:
        try:
            line = parse_line(text)
        except LineError as error:
            faults.append(str(error))
            continue
        if fault := fault_of(line):
            faults.append(str(fault))
            if not (isinstance(line, Sample) and is_name(line.tag)):
                continue
            line = doubtful(line.tag, line.at)
        lines.append(line)
    return tuple(lines), tuple(faults)


def at_arrival(line: Line, now: int) -> Line:
    """Return a line that arrives now, at its source time when that is plausible, else at its arrival.

    A late sample keeps its time, unless that is in the future.
    """
    if isinstance(line, Sample) and line.late and 0 <= line.at <= now:
        return line
    at = plausible_time(line.at, now)
    return line if at == line.at else msgspec.structs.replace(line, at=at)


def placed_line(line: Line, batch: Batch) -> Line:
    """Return a line of a batch at the instant that was checked at its arrival, once."""
    return line if batch.is_placed else at_arrival(line, batch.arrived_at)


def doubtful(tag: str, at: int) -> Sample:
    """Return the sample of a tag whose value could not be taken: its last value is uncertain from now on."""
    return Sample(at, tag, None, Quality.UNCERTAIN)


def plausible_time(source_at: int, arrived_at: int) -> int:
    """Return a source time that is at most a minute before and a second after the arrival, else the arrival."""
    return source_at if arrived_at - _LATE_MS <= source_at <= arrived_at + EARLY_MS else arrived_at


def moved_to(line: Line, at: int, arrived_at: int) -> Line:
    """Return a line at the instant at which it counts; a sample notes when it arrived."""
    if isinstance(line, Sample):
        return msgspec.structs.replace(line, at=at, arrived_at=arrived_at)
    return line if line.at == at else msgspec.structs.replace(line, at=at)
