"""The steps of a job of an Open Protocol controller (MID 0033): a list of text after the fields of the table."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from edge.features.openprotocol.protocol.fields import encode_data
from edge.features.openprotocol.protocol.frame import MidFrame
from edge.features.openprotocol.protocol.mids import Mid, layout_of, parse_message
from edge.foundation.errors import Refused
from edge.foundation.text import Text

_LIST = b"13"
_MOST_STEPS = 99


class JobStep(Struct, frozen=True):
    """One parameter set of a job, with the size of its batch."""

    channel: int
    parameter_set: int
    batch_size: int


def parse_job(frame: MidFrame) -> dict[str, Any]:
    """Return the fields of a job, and its `steps`. Raises Refused(`unreadable`) with what is wrong."""
    fields = parse_message(frame)
    width = sum(field.width + 2 for field in layout_of(frame.mid, frame.revision))
    listed = frame.data[width:].rstrip(b"\0 ")
    if listed and not listed.startswith(_LIST):
        raise Refused(
            "unreadable",
            Text.of("MID 0033: expected the list of parameter sets, found {listed}", listed=repr(listed[:2])),
        )
    return fields | {"steps": tuple(_steps(listed.removeprefix(_LIST).decode("latin-1")))}


def encode_job(revision: int, steps: Sequence[JobStep], **fields: Any) -> MidFrame:
    """Return the description of a job as a controller sends it; raises as `encode_data`."""
    data = encode_data(layout_of(Mid.JOB_REPLY, revision), {**fields, "parameter_sets": len(steps)})
    listed = "".join(f"{step.channel:02d}:{step.parameter_set:03d}:0:{step.batch_size:02d};" for step in steps)
    return MidFrame(Mid.JOB_REPLY, data + _LIST + listed.encode(), revision)


def _steps(text: str) -> Iterator[JobStep]:
    for word in [part for part in text.split(";") if part.strip()][:_MOST_STEPS]:
        numbers = word.split(":")
        try:
            channel, parameter_set, _automatic, size = (int(number) for number in numbers[:4])
        except ValueError:
            raise Refused(
                "unreadable", Text.of("MID 0033: {word} is not a parameter set of a job", word=repr(word[:20]))
            ) from None
        yield JobStep(channel, parameter_set, size)
