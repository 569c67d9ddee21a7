"""`[flows]`: cyclic work next to the jobs."""

from typing import Annotated, Literal

from msgspec import Meta

from edge.config.sections import FeatureSettings, Section


class FlowsSettings(FeatureSettings, frozen=True, kw_only=True):
    """`[flows]`: whether and how this gateway runs flows."""

    run: Annotated[
        Literal["off", "on"],
        Meta(description="`on` runs the flows of the store; without it nothing of them is loaded."),
    ] = "off"
    kept_cycles: Annotated[
        int,
        Meta(
            ge=0,
            le=100_000,
            description="Maximum number of ended cycles of a flow that are kept; 0 keeps all of them for 7 "
            "days, and their node "
            "tasks for 24 hours, as far as `kept_mb` allows.",
        ),
    ] = 0
    kept_mb: Annotated[
        int,
        Meta(
            ge=1,
            le=100_000,
            description="Memory of the store in MB, about, for the ended cycles of a flow; beyond it the oldest "
            "are removed before their time, and all but 100 while the store is half full.",
        ),
    ] = 32
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

    @property
    def is_on(self) -> bool:
        """Whether flows run."""
        return self.run != "off"


SECTIONS = {"flows": Section(FlowsSettings, after="metrics")}
