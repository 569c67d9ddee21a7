"""`[users]`: the users of OPC UA and of the command line, and their second factor."""

from typing import Annotated, Literal

from msgspec import Meta, Struct


class UsersSettings(Struct, frozen=True, kw_only=True):
    """`[users]`: the user file, and what a login needs."""

    file: Annotated[
        str,
        Meta(
            description="Users, their roles, password hashes and second factors; `edge users` writes it. Empty takes "
            "`[opcua] users_file`.",
            extra={"expected": "the path of a file"},
        ),
    ] = ""
    totp: Annotated[
        tuple[Literal["observer", "operator", "engineer"], ...],
        Meta(
            description="Roles whose users need a second factor; other users may have one.",
            extra={"expected": "a list of observer, operator, engineer"},
        ),
    ] = ()
    cli: Annotated[
        Literal["open", "login"],
        Meta(
            description="`login` lets commands change something only after `edge users login`, and names that user in "
            "the audit trail; `open` takes the user of the system."
        ),
    ] = "open"
    session: Annotated[
        int, Meta(ge=60, le=604_800, description="Seconds after which a login on the command line ends.")
    ] = 28_800
    second_person: Annotated[
        tuple[Literal["retry", "skip", "force", "complete"], ...],
        Meta(
            description="Interventions in a job that take effect only when a second user asks for the same.",
            extra={"expected": "a list of retry, skip, force, complete"},
        ),
    ] = ()
    second_person_resolve: Annotated[
        Literal["auto", "on", "off"],
        Meta(
            description="Whether a decision about an unknown outcome (`edge jobs resolve`) takes effect only when a "
            "second user asks for the same: `auto` where `skip` does, as both write a result by hand."
        ),
    ] = "auto"
    second_person_within: Annotated[
        int, Meta(ge=10, le=86_400, description="Seconds within which the second user must ask for it.")
    ] = 600
