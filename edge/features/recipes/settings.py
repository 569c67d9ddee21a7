"""`[recipes]`: what a gateway does with recipes that have faults, and what is kept of revisions and drafts."""

from typing import Annotated

from msgspec import Meta

from edge.config.sections import FeatureSettings, Section


class RecipesSettings(FeatureSettings, frozen=True, kw_only=True):
    """`[recipes]`: recipes at which a job can stand still, their revisions and drafts."""

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
    draft_versions: Annotated[
        int, Meta(ge=1, le=1000, description="Versions of each draft of a recipe that can be undone.")
    ] = 100
    drafts: Annotated[int, Meta(ge=1, le=1000, description="Most drafts of recipes at a time.")] = 50
    second_person: Annotated[
        bool,
        Meta(
            description="A release or a rollback of a person takes effect when another engineer confirms it; "
            "what the MES and station files send is not affected."
        ),
    ] = False


SECTIONS = {"recipes": Section(RecipesSettings, after="northbound")}
