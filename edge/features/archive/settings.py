"""`[archive]`: the file in which ended jobs stay, and for how long."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from edge.config.sections import FeatureSettings, FilePath, Section, Settings
from edge.foundation.text import Text


class ArchiveSettings(FeatureSettings, frozen=True, kw_only=True):
    """`[archive]`: ended jobs with their results and histories in a file, and how long they stay."""

    directory: Annotated[
        str,
        Meta(
            description="Directory of the archive, such as `/var/lib/microdcs-edge/archive`; empty archives no jobs.",
            extra={"expected": "the path of a directory"},
        ),
    ] = ""
    months: Annotated[int, Meta(ge=1, le=240, description="Months for which a job stays in the archive.")] = 12
    max_bytes: Annotated[
        int,
        Meta(
            ge=1 << 20,
            le=1 << 44,
            description="Maximum size of the archive in bytes; the oldest jobs are removed first.",
        ),
    ] = 2 << 30
    interval: Annotated[
        float,
        Meta(
            gt=0,
            le=3600,
            description="Seconds between two writes: each wears the flash. A hundred ended jobs are written at once.",
        ),
    ] = 60.0

    url: Annotated[
        str,
        Meta(
            description="PostgreSQL of the plant that gets a copy of each job, such as `postgresql://edge@db/results`; "
            "empty keeps them here only.",
            extra={"schemes": ("postgresql",)},
        ),
    ] = ""
    password: Annotated[str, Meta(description="Password of its user.", extra={"secret": True})] = ""
    password_file: Annotated[
        FilePath,
        Meta(
            description="File that holds the password; systemd's credentials are found by their bare name.",
        ),
    ] = ""

    @property
    def is_on(self) -> bool:
        """Whether there is an archive."""
        return bool(self.directory)

    @property
    def file(self) -> Path:
        """The file of the archive."""
        return Path(self.directory) / "results.sqlite"

    def conflicts(self, _settings: Settings) -> Iterator[str | Text]:
        """Yield a relative directory: the service and a command would not mean the same."""
        if self.directory and not Path(self.directory).is_absolute():
            yield Text.of("directory: expected an absolute path, got {directory!r}", directory=self.directory)


SECTIONS = {"archive": Section(ArchiveSettings, after="traces")}
