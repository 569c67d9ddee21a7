"""`[northbound]`: the settings of the job interface towards the MES."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

Topic = Annotated[
    str,
    Meta(
        pattern=r"^[^\s/+#]+(/[^\s/+#]+)*$",
        extra={"expected": "an MQTT topic without wildcards, blanks or a slash at its ends"},
    ),
]
_LEVEL = r"(\+|[^\s/+#]*)"
TopicFilter = Annotated[
    str,
    Meta(
        # MQTT 5, 4.7.1 and 4.8.2.
        pattern=rf"^(\$share/[^\s/+#]+/)?(?=.)(?!\$share/)(#|{_LEVEL}(/{_LEVEL})*(/#)?)$",
        extra={"expected": "an MQTT topic filter without blanks, as mes/+/answers or mes/#"},
    ),
]


class NorthboundSettings(Struct, frozen=True, kw_only=True):
    """`[northbound]`: the job interface towards the MES."""

    topic_prefix: Annotated[Topic, Meta(description="Calls come on `{topic_prefix}/{scope}/commands`.")] = "app/jobs"
    max_downloadable_job_orders: Annotated[
        int, Meta(ge=1, le=65535, description="Maximum number of job orders of a scope at a time.")
    ] = 1000
    max_age: Annotated[
        int,
        Meta(
            ge=0,
            description="Age in seconds at which a message is refused as expired, by its own `time` or the broker's "
            "count of its expiry; 0: at no age.",
        ),
    ] = 86_400
    progress: Annotated[
        Literal["readers", "always", "off"],
        Meta(
            description="When the progress of running recipes is published: while the topic has `readers` (found out "
            "once a minute), `always`, or never (`off`)."
        ),
    ] = "readers"
    response_topics: Annotated[
        tuple[TopicFilter, ...],
        Meta(description="Topic filters outside `topic_prefix` to which answers may go, as `mes/+/answers`."),
    ] = ()
