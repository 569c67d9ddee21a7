"""Messages between gateway and equipment over MQTT: data, and attributes, which are MQTT user properties."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta


class CommandData(msgspec.Struct, frozen=True):
    """The data of a command; `parameters` are those of the action, replaced by those of the run.

    Example: {"job_id": "ORDER-1001", "action": "tighten", "attempt": 1, "parameters": {"torque_spec": "85Nm"}}
    """

    job_id: str
    action: str
    attempt: int
    parameters: dict[str, Any]


class TaskData(msgspec.Struct, frozen=True):
    """The task of a device that requested work.

    Example: {"job_id": "ORDER-1001", "action": "inspect", "parameters": {"camera_recipe": "axle"}}
    """

    job_id: str
    action: str
    parameters: dict[str, Any]


class CommandAttributes(msgspec.Struct, frozen=True, kw_only=True):
    """The attributes of a command, each an MQTT user property.

    Example: {"specversion": "1.0", "id": "ORDER-1001/c484278a-a63e-489f-869d-182372951b5d/tighten/1",
     "source": "urn:microdcs-edge:edge", "type": "com.example.station.tighten.v1", "subject": "station-1",
     "correlationid": "c484278a-a63e-489f-869d-182372951b5d", "phase": "start"}
    """

    specversion: Literal["1.0"]
    id: Annotated[str, Meta(description="The id of the command, the same each time it is sent.")]
    source: str
    type: Annotated[str, Meta(description="The type_id of the action.")]
    subject: Annotated[str, Meta(description="The scope of the station.")]
    correlationid: Annotated[
        str, Meta(description="The id of the job's run, constant for its life, also in Correlation Data as 16 bytes.")
    ]
    phase: Annotated[
        Literal["start", "stop", "reset", "pause", "resume"],
        Meta(
            description='Stop, pause and resume have the id of their start; the last two come with `pause = "on"` only.'
        ),
    ]
    offeredagain: Annotated[
        Literal["true"] | None, Meta(description="Set when the command was, or may have been, sent before.")
    ] = None
    causationid: Annotated[str | None, Meta(description="The id of the event that stored the job order.")] = None
    expiryinterval: (
        Annotated[
            str,
            Meta(
                pattern="^[0-9]+$",
                description="Seconds until a start expires, from its sending; also the Message Expiry Interval, which "
                "the broker counts down.",
            ),
        ]
        | None
    ) = None
    traceparent: Annotated[str | None, Meta(description="W3C Trace Context of the call that stored the job order.")] = (
        None
    )
    tracestate: Annotated[str | None, Meta(description="W3C Trace Context; only together with `traceparent`.")] = None


class AnswerAttributes(msgspec.Struct, frozen=True, kw_only=True):
    """The attributes of an answer, each an MQTT user property; `causationid` is the one that is needed.

    Example: {"causationid": "ORDER-1001/c484278a-a63e-489f-869d-182372951b5d/tighten/1"}
    Example: {"causationid": "ORDER-1001/c484278a-a63e-489f-869d-182372951b5d/tighten/1", "mdcserrorkind": "unknown",
     "mdcserrormessage": "the power was lost during the tightening"}
    """

    causationid: Annotated[str, Meta(description="The id of the command.")]
    mdcserrorkind: Annotated[
        str | None,
        Meta(
            description="Set when the command failed; `unknown` when its outcome is unknown, `not_stopped` when it "
            "declines a stop."
        ),
    ] = None
    mdcserrormessage: Annotated[str | None, Meta(description="Why.")] = None
    specversion: Literal["1.0"] | None = None
    id: str | None = None
    source: str | None = None
    type: str | None = None
    subject: str | None = None


class EventAttributes(msgspec.Struct, frozen=True, kw_only=True):
    """The attributes of an event, each an MQTT user property; `source` and `id` together identify it permanently.

    Example: {"specversion": "1.0", "id": "27", "source": "/scanner", "type": "com.example.station.scanned.v1",
     "subject": "station-1"}
    """

    specversion: Literal["1.0"]
    id: str
    source: str
    type: Annotated[str, Meta(description="The type_id of a pull_event action.")]
    subject: Annotated[str, Meta(description="The scope of the station.")]
    joborderid: Annotated[str | None, Meta(description="The job that it belongs to, where it is known.")] = None
    correlationid: Annotated[str | None, Meta(description="The job that it belongs to, by its correlationid.")] = None


AnswerData = Annotated[dict[str, Any], Meta(examples=[{"torque": {"value": 85.2, "unit": "Nm"}, "angle": 41.5}])]
"""The data of an answer or an event: what the recipe and the job response have as the result of the action."""

Permission = Annotated[
    bool,
    Meta(description="Whether a command needs the tool: it works only while this is true.", examples=[True]),
]
"""The payload of the retained topic `enabled`, as JSON."""

Presence = Literal["online", "offline"]
"""The payload of the retained topic `presence`, plain text."""
