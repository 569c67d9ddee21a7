"""The CloudEvents types of the northbound side."""

import re

METHOD_TYPE = "org.opcfoundation.ISA95-JOBCONTROL_V2.{}.v2"
"""The type of a call of the job method of that BrowseName, and of its answer."""

CONFIG_TYPE = "com.github.aschamberger.ISA95-JOBCONTROL_V2.config.{}.v1"
"""The type of station settings of that kind, and of their answer."""

STATUS_EVENT_TYPE = METHOD_TYPE.format("ISA95JobOrderStatusEventType")
JOB_ORDER_TYPE = METHOD_TYPE.format("ISA95JobOrderAndStateDataType")
STATE_INDEX_TYPE = "com.github.aschamberger.ISA95-JOBCONTROL_V2.StateIndex.v1"
JOB_RESPONSE_TYPE = METHOD_TYPE.format("ISA95JobResponseDataType")

PROGRESS_TYPE = "com.github.aschamberger.microdcs.sfc-progress.v2"

PROGRESS_TYPE_V1 = "com.github.aschamberger.microdcs.sfc-progress.v1"
"""The type of progress in its former form, with `[northbound] event_version = 1`."""

RESPONSE_UPDATE_TYPE = "com.github.aschamberger.microdcs.ResponseUpdate.v1"
"""The type of the event about a job response that changed without a transition of its job, also after the end."""

AWAITS_PERSON_TYPE = "com.github.aschamberger.microdcs.AwaitsPerson.v1"
"""The type of the event about a job that waits for the decision of a person."""

LATE_RESULT_TYPE = "com.github.aschamberger.microdcs.result.late.v1"
"""The type of the event about a result that no command waited for."""

RESOLVE_TYPE = "com.github.aschamberger.microdcs.resolve.v1"
"""The type of a decision about an action of unknown outcome, and of its answer."""

INTERVENE_TYPE = "com.github.aschamberger.microdcs.intervene.v1"
"""The type of an intervention in a job, and of its answer."""

ACKNOWLEDGE_TYPE = "com.github.aschamberger.microdcs.acknowledge.v1"
"""The type of the acknowledgement of results, and of its answer."""

RELEASE_TYPE = "com.github.aschamberger.microdcs.release.v1"
"""The type of a release of unconfirmed stops, and of its answer."""

ALARM_TYPE = "com.github.aschamberger.microdcs.alarm.v2"
"""The type of a change of an alarm."""

ALARM_TYPE_V1 = "com.github.aschamberger.microdcs.alarm.v1"
"""The type of a change of an alarm in its former form, with `[northbound] event_version = 1`."""

ALARM_METHOD_TYPE = "com.github.aschamberger.microdcs.alarm.{}.v1"
"""The type of a call of the method of an alarm, and of its answer."""

MAINTENANCE_METHOD_TYPE = "com.github.aschamberger.microdcs.maintenance.{}.v1"
"""The type of a call of the method of the maintenance mode, and of its answer."""

LOCKS_METHOD_TYPE = "com.github.aschamberger.microdcs.locks.{}.v1"
"""The type of a call of the method of the locks, and of its answer."""

TRACES_METHOD_TYPE = "com.github.aschamberger.microdcs.traces.{}.v1"
"""The type of a call of the method of traces, and of its answer."""

RESULTS_METHOD_TYPE = "com.github.aschamberger.microdcs.results.{}.v1"
"""The type of a call of the method of the archive, and of its answer."""

PROMPT_TYPE = "com.github.aschamberger.microdcs.prompt.v1"
"""The type of the event about a prompt that opened or ended."""

PROMPT_METHOD_TYPE = "com.github.aschamberger.microdcs.prompt.{}.v1"
"""The type of a call of the method of prompts, and of its answer."""

FLOW_METHOD_TYPE = "com.github.aschamberger.microdcs.flow.{}.v1"
"""The type of a call of the method of a flow, and of its answer."""

REFUSED_TYPE = "com.github.aschamberger.microdcs.refused.v1"
"""The type of the answer to a message that has no readable type of its own."""

_NAMESPACES = ("org.opcfoundation.ISA95-JOBCONTROL_V2", "org.opcfoundation.Machinery.Jobs")
_MICRODCS_CALL = re.compile(r"(?P<namespace>[A-Za-z0-9_.-]+)\.(?P<method>[A-Za-z]+)Call\.v(?P<version>[12])")
"""How MicroDCS names a call: `{namespace}.{Method}Call.v{n}`, answered by `{namespace}.{Method}Response.v{n}`."""


def canonical_type(event_type: str) -> str:
    """Return the type of a call as this gateway names it; MicroDCS names the same call in another way."""
    match = _microdcs_call(event_type)
    return METHOD_TYPE.format(match["method"]) if match else event_type


def answer_type(event_type: str) -> str:
    """Return the type of the answer to a call: that of the call, in MicroDCS' form `…Response` for `…Call`."""
    match = _microdcs_call(event_type)
    return f"{match['namespace']}.{match['method']}Response.v{match['version']}" if match else event_type


def _microdcs_call(event_type: str) -> re.Match[str] | None:
    match = _MICRODCS_CALL.fullmatch(event_type)
    return match if match and match["namespace"] in _NAMESPACES else None
