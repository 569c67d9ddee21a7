"""`[station]`: the folder of station files, and how often the store is compared with them."""

from typing import Annotated

from msgspec import Meta, Struct


class StationFilesSettings(Struct, frozen=True, kw_only=True):
    """`[station]`: station files, which fill an empty store and are compared with it."""

    files: Annotated[
        str,
        Meta(
            description="Folder of the station files: Work Masters, resources, limits, tags, rules and flows. An empty "
            "store is filled from it at the start. It may be absent; empty switches station files off.",
            extra={"expected": "the path of a directory"},
        ),
    ] = "/etc/microdcs-edge/station.d"
    compare: Annotated[
        int, Meta(ge=1, le=86_400, description="Seconds between two comparisons of the store with the files.")
    ] = 60
