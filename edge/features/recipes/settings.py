"""`[recipes]`: what a gateway does with recipes that have faults."""

from typing import Annotated

from msgspec import Meta

from edge.config.sections import FeatureSettings, Section


class RecipesSettings(FeatureSettings, frozen=True, kw_only=True):
    """`[recipes]`: recipes at which a job can stand still."""

    refuse_faulty: Annotated[
        bool,
        Meta(
            description="Refuse a Work Master of the MES at which a job can stand still; "
            "else it is stored, with the findings in the answer and an alarm.",
        ),
    ] = False
    keep_revisions: Annotated[
        int, Meta(ge=1, le=1000, description="Revisions of each Work Master that are kept, the released one included.")
    ] = 50


SECTIONS = {"recipes": Section(RecipesSettings, after="northbound")}
