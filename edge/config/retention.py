"""`[retention]`: how long jobs, results and marks are kept."""

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta, Struct

from edge.foundation.text import Text

SESSION_EXPIRY_SECONDS = 24 * 60 * 60
"""How long a broker keeps a session of ours, with the messages that arrive meanwhile, after its connection ends."""


class RetentionSettings(Struct, frozen=True, kw_only=True):
    """`[retention]`: the lifetimes of ended jobs, marks and dead letters, in seconds."""

    ended_jobs: Annotated[
        int, Meta(ge=1, description="Seconds a job order in an EndState stays, with its run and response.")
    ] = 86_400
    kept_jobs: Annotated[
        int,
        Meta(
            ge=1,
            description="Maximum number of ended job orders of a scope that are kept for `ended_jobs`: beyond "
            "it the oldest whose result the MES has, as `confirmation` defines it, are removed at "
            "once; with `mes` then the oldest delivered ones.",
        ),
    ] = 10_000
    confirmation: Annotated[
        Literal["mes", "delivery", "clear", "none"],
        Meta(
            description="Confirmation that the MES has a result: `mes`, its Clear, its acknowledgement or its request "
            "for the response; `delivery` to a subscriber of its topic or status event; only `clear`; or `none`: jobs "
            "go after `ended_jobs` in any case. Without a broker `delivery` is `none`."
        ),
    ] = "mes"
    undelivered_jobs: Annotated[
        int,
        Meta(
            ge=1,
            description="Maximum number of ended job orders of a scope that stay beyond `ended_jobs` until the "
            "MES has their result; reported from half of that number on. Beyond it delivered ones "
            "that are not confirmed are removed first, the oldest first.",
        ),
    ] = 10_000
    undelivered_full: Annotated[
        Literal["refuse", "delete"],
        Meta(
            description="Treatment of undelivered results beyond `undelivered_jobs`: `refuse` accepts no new job "
            "order until they are delivered, cleared or exported; `delete` removes the oldest, with an error in the "
            "log."
        ),
    ] = "refuse"
    retained_topics: Annotated[
        int, Meta(ge=60, description="Seconds a broker keeps retained topics; they are published again before.")
    ] = 172_800
    dedupe: Annotated[
        int,
        Meta(
            ge=1,
            description="Seconds within which a repeated message has no second effect: at least the day for which the "
            "broker keeps our session plus `[mqtt] broker_autosave`.",
        ),
    ] = 90_000
    marks: Annotated[
        int,
        Meta(
            ge=1000,
            description="Maximum number of marks of repeated messages and removed job orders in the store, some "
            "300 bytes each; reported from half of that number on. At that number new orders are "
            "refused until "
            "marks expire after `dedupe`. A source of calls may use half of them, a piece of equipment a quarter.",
        ),
    ] = 500_000
    dead_letters: Annotated[
        int, Meta(ge=60, description="Seconds for which dead letters are kept after the last one.")
    ] = 2_592_000
    decisions: Annotated[
        int,
        Meta(
            ge=0,
            description="Maximum number of decisions about a job that its history keeps, some 120 bytes each; "
            "then the oldest are removed, and the job cannot be replayed. 0: none.",
        ),
    ] = 10_000
    audit: Annotated[
        int,
        Meta(
            ge=0,
            description="Maximum number of audit records that the store keeps; then the oldest are removed. 0: "
            "the log only.",
        ),
    ] = 20_000

    def conflicts(self, broker_url: str, broker_autosave: int) -> Iterator[str | Text]:
        """Yield a fault if the broker can deliver a message again after its mark has expired."""
        least = SESSION_EXPIRY_SECONDS + broker_autosave
        if broker_url and self.dedupe < least:
            yield (
                Text.of(
                    "dedupe: expected at least {least}, the {session_expiry_seconds} s for which a broker "
                    "keeps our session plus mqtt.broker_autosave, got {dedupe}",
                    least=least,
                    session_expiry_seconds=SESSION_EXPIRY_SECONDS,
                    dedupe=self.dedupe,
                )
            )
