"""Reads results that a tightening controller stores, one by one (OPC 40001-101): the latest, or a listed one."""

from collections.abc import Sequence
from typing import Any

import structlog

from edge.features.joining.methods import IjtMethods
from edge.foundation.errors import Refused

# Time for which the server must keep a result handle; it is released at once.
_HANDLE_MS = 1000
_LISTING = ("GetResultIdListFiltered", "GetResultById")
_NO_LIMIT = 0

_log = structlog.get_logger(__name__)


async def latest_result(methods: IjtMethods) -> Any:
    """Return the data of the latest result; None when there is none. Raises Refused(`too_large`)."""
    if "GetLatestResult" not in methods:
        return None
    try:
        handle, data = await methods.call_result_method("GetLatestResult", _HANDLE_MS, output_count=2)
        await _release(methods, handle)
    except Refused as refusal:
        if refusal.kind == "too_large":
            raise
        # The controller has no result yet.
        return None
    return data


async def listed_ids(methods: IjtMethods) -> list[str]:
    """Return the ids of all results that the controller lists, which may be partial; the likely newest first."""
    if not all(name in methods for name in _LISTING):
        return []
    try:
        arguments = (None, None, _NO_LIMIT, _HANDLE_MS)
        handle, ids = await methods.call_result_method("GetResultIdListFiltered", *arguments, output_count=2)
        await _release(methods, handle)
    except Refused as refusal:
        _log.info("results not listed", reason=refusal.message)
        return []
    return from_both_ends(ids or ())


async def read_result(methods: IjtMethods, result_id: str) -> Any:
    """Return the data of a listed result; raises Refused, `too_large` when it exceeds the size limit of a message."""
    handle, data = await methods.call_result_method("GetResultById", result_id, _HANDLE_MS, output_count=2)
    await _release(methods, handle)
    return data


def from_both_ends(ids: Sequence[str]) -> list[str]:
    """Return the last id, the first, the one before the last, and so on: the newest result is at either end."""
    return [result_id for pair in zip(reversed(ids), ids, strict=True) for result_id in pair][: len(ids)]


async def _release(methods: IjtMethods, handle: Any) -> None:
    if handle and "ReleaseResultHandle" in methods:
        await methods.call_result_method("ReleaseResultHandle", handle)
