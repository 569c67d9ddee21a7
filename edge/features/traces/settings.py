"""`[traces]`: the files of curves that equipment measures, and of images that it takes."""

from typing import Annotated

from msgspec import Meta

from edge.config.sections import FeatureSettings, Section


class TracesSettings(FeatureSettings, frozen=True, kw_only=True):
    """`[traces]`: curves and images of results as files, and how many of them are kept."""

    directory: Annotated[
        str,
        Meta(
            description="Directory of the files, such as `/var/lib/microdcs-edge/traces`; empty stores no traces.",
            extra={"expected": "the path of a directory"},
        ),
    ] = ""
    max_bytes: Annotated[
        int,
        Meta(ge=1 << 20, le=1 << 40, description="Maximum size of all files in bytes; the oldest are removed first."),
    ] = 256 << 20
    max_file_bytes: Annotated[
        int,
        Meta(
            ge=1024,
            le=1 << 30,
            description="Maximum size of a file that a device offers, in bytes; a larger one is not stored.",
        ),
    ] = 16 << 20
    max_files: Annotated[
        int, Meta(ge=10, le=1_000_000, description="Maximum number of files; the oldest are removed first.")
    ] = 10_000
    max_age: Annotated[int, Meta(ge=60, le=315_360_000, description="Seconds after which a file is removed.")] = (
        2_592_000
    )

    @property
    def results_folder(self) -> str:
        """The folder of the files; empty stores none."""
        return self.directory


SECTIONS = {"traces": Section(TracesSettings, after="mirror")}
