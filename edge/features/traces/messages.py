"""The method by which the MES and sidecars read the file of a trace, and its answer."""

from edge.model.isa95 import Payload, ReturnStatus


class TraceCall(Payload, frozen=True, kw_only=True):
    """Which file, as the reference in a result names it, and from which byte on."""

    file: str
    offset: int = 0


class TraceAnswer(Payload, frozen=True, kw_only=True):
    """A part of the file in base64, at most 192 KiB; `size` is that of the whole file."""

    return_status: ReturnStatus
    file: str
    size: int
    offset: int
    data: str
