"""`[operations]`: where the operations of this gateway write their files."""

from typing import Annotated

from msgspec import Meta, Struct


class OperationsSettings(Struct, frozen=True, kw_only=True):
    """`[operations]`: the files of backups and support bundles that a gateway makes."""

    directory: Annotated[
        str,
        Meta(
            description="Folder of the files that operations write; it is created.",
            extra={"expected": "the path of a directory"},
        ),
    ] = "/var/lib/microdcs-edge/operations"
    recording_mib: Annotated[
        int,
        Meta(ge=1, le=1_048_576, description="Largest size of a recording in MiB; one that reaches it ends."),
    ] = 100
    kept_files: Annotated[int, Meta(ge=1, le=1000, description="Newest files of each type that are kept there.")] = 7
