"""The note of a person's intervention in a run: asked for, confirmed, carried out."""

from __future__ import annotations

from typing import Any

import msgspec


class InterventionNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """An intervention, kept with the run for the job response. Instants are milliseconds since the Unix epoch.

    With `until` it waits for a second person up to that instant; `mark` then identifies the activation that it is
    about, and `data` is the result of a skipped action. `second` confirmed it at `second_at`, for `second_reason`.
    """

    kind: str
    subject: str
    by: str
    reason: str
    at: int
    until: int | None = None
    mark: str = ""
    data: Any = None
    second: str = ""
    second_at: int | None = None
    second_reason: str = ""
