"""Reports to a client why a method refused its call: the diagnostics of OPC 10000-4, 7.12 and 7.32.

A client asks for them by bits of `returnDiagnostics`. The text is in the language of the session.
"""

import struct
from collections.abc import Iterable, Mapping
from enum import IntFlag
from typing import Final

from asyncua import ua
from asyncua.ua.ua_binary import Primitives

MOST_CHARACTERS: Final = 2000
"""The longest reason of a diagnostic."""


class Wanted(IntFlag):
    """The bits of `returnDiagnostics` for single operations that are answered."""

    LOCALIZED_TEXT = 0x40
    ADDITIONAL_INFO = 0x80


class _Mask(IntFlag):
    """The encoding mask of a DiagnosticInfo (OPC 10000-6, 5.2.2.12)."""

    LOCALIZED_TEXT = 0x04
    ADDITIONAL_INFO = 0x10


class ExplainedResult(ua.CallMethodResult):
    """The result of a refused call with its reason, which is not encoded as a part of the result."""

    __slots__ = ("reason",)

    def __init__(self, result: ua.CallMethodResult, reason: str) -> None:
        super().__init__(
            result.StatusCode, result.InputArgumentResults, result.InputArgumentDiagnosticInfos, result.OutputArguments
        )
        self.reason = reason[:MOST_CHARACTERS]


def encode_diagnostics(results: Iterable[ua.CallMethodResult], wanted: int) -> tuple[list[str], bytes]:
    """Return the string table, and the array of a DiagnosticInfo for each result; both empty when none is wanted.

    asyncua exchanges the mask bits of Locale and LocalizedText.
    """
    reasons = [result.reason if isinstance(result, ExplainedResult) else "" for result in results]
    bits = Wanted(wanted & (Wanted.LOCALIZED_TEXT | Wanted.ADDITIONAL_INFO))
    if not bits or not any(reasons):
        return [], _NONE
    table = {text: index for index, text in enumerate(dict.fromkeys(filter(None, reasons)))}
    encoded = _count(len(reasons)) + b"".join(_encode(reason, table, bits) for reason in reasons)
    return list(table) if Wanted.LOCALIZED_TEXT in bits else [], encoded


def _encode(reason: str, table: Mapping[str, int], bits: Wanted) -> bytes:
    if not reason:
        return b"\0"
    mask, parts = _Mask(0), b""
    if Wanted.LOCALIZED_TEXT in bits:
        mask |= _Mask.LOCALIZED_TEXT
        parts += _count(table[reason])
    if Wanted.ADDITIONAL_INFO in bits:
        mask |= _Mask.ADDITIONAL_INFO
        parts += Primitives.String.pack(reason)
    return bytes((mask,)) + parts


def _count(number: int) -> bytes:
    return struct.pack("<i", number)


_NONE: Final = _count(0)
"""An empty array."""
