"""`[flows]`: cyclic work next to the jobs."""

from typing import Annotated, Literal

from msgspec import Meta, Struct


class FlowsSettings(Struct, frozen=True, kw_only=True):
    """`[flows]`: whether and how this gateway runs flows."""

    run: Annotated[
        Literal["off", "on"],
        Meta(description="`on` runs the flows of the store; without it nothing of them is loaded."),
    ] = "off"
    kept_cycles: Annotated[
        int, Meta(ge=1, le=100_000, description="Most ended cycles of a flow that are kept, for at most 7 days.")
    ] = 100
    directory: Annotated[
        str,
        Meta(
            description="Folder of the files that `file.append` writes.",
            extra={"expected": "the path of a directory"},
        ),
    ] = "/var/lib/microdcs-edge/flows"
    nodes: Annotated[
        str,
        Meta(
            description="Folder of the node kinds of this site, Python files; empty for none. Workers run them.",
            extra={"must_be": "directory"},
        ),
    ] = ""
