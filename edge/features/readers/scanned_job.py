"""A job that a code starts, and the JobOrderID of a code."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias
from urllib.parse import quote

from msgspec import Struct

_ENCODED = re.compile("%[0-9A-F]{2}")


class ScannedJob(Struct, frozen=True):
    """A job that a code starts: with `work_master` it is stored first. `event_id` identifies the reading."""

    scope: str
    job_order_id: str
    work_master: str
    parameters: Mapping[str, Any]
    event_id: str


StartScanned: TypeAlias = Callable[[ScannedJob], Awaitable[None]]
"""Queues a job that a code starts. Raises Refused when too many jobs wait."""


def to_job_order_id(code: str) -> str:
    r"""Return a code as a JobOrderID: percent-encoded (RFC 3986, UTF-8) where it holds a character that an id may not.

    Different codes have different ids: a code that looks encoded is encoded, too.

    >>> to_job_order_id("010950110153000310AB-123\x1d21SER1")
    '010950110153000310AB-123%1D21SER1'
    """
    if code.isprintable() and not _ENCODED.search(code):
        return code
    return "".join(character if _is_kept(character) else quote(character, safe="") for character in code)


def _is_kept(character: str) -> bool:
    return character.isprintable() and character != "%"
