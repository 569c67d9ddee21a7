"""The CloudEvents types of the northbound side: both ends of the line name the same things."""

METHOD_TYPE = "org.opcfoundation.ISA95-JOBCONTROL_V2.{}.v2"
"""Of a call of the job method of that BrowseName, and of its answer."""

CONFIG_TYPE = "com.github.aschamberger.ISA95-JOBCONTROL_V2.config.{}.v1"
"""Of station settings of that kind, and of their answer."""

STATUS_EVENT_TYPE = METHOD_TYPE.format("ISA95JobOrderStatusEventType")
JOB_ORDER_TYPE = METHOD_TYPE.format("ISA95JobOrderAndStateDataType")
STATE_INDEX_TYPE = "com.github.aschamberger.ISA95-JOBCONTROL_V2.StateIndex.v1"
JOB_RESPONSE_TYPE = METHOD_TYPE.format("ISA95JobResponseDataType")

PROGRESS_TYPE = "com.github.aschamberger.microdcs.sfc-progress.v1"

REFUSED_TYPE = "com.github.aschamberger.microdcs.refused.v1"
"""Of the answer to a message that does not even tell its own type."""
