"""The messages of Open Protocol (MIDs) that the gateway uses: numbers, errors, and tables of fields by revision."""

from collections.abc import Mapping
from enum import IntEnum
from itertools import accumulate
from types import MappingProxyType
from typing import Any

from edge.features.openprotocol.protocol.fields import DataField, FieldKind, Layout, decode_data, encode_data
from edge.features.openprotocol.protocol.frame import MidFrame
from edge.features.openprotocol.protocol.result_fields import LATEST_RESULT, OLD_RESULT, numbered
from edge.foundation.errors import Refused
from edge.foundation.text import Text

_TEXT, _DATE, _NM = FieldKind.TEXT, FieldKind.DATE, FieldKind.HUNDREDTHS


TOOL_LOCKED_RELAY = 30
"""The relay function of a locked tool, which a controller tracks (0216 to 0219)."""


class Mid(IntEnum):
    """The number of a message."""

    START = 1
    STARTED = 2
    STOP = 3
    DECLINED = 4
    ACCEPTED = 5
    SUBSCRIBE_DATA = 8
    UNSUBSCRIBE_DATA = 9
    PARAMETER_SETS = 10
    PARAMETER_SETS_REPLY = 11
    PARAMETER_SET = 12
    PARAMETER_SET_REPLY = 13
    PARAMETER_SET_SUBSCRIBE = 14
    PARAMETER_SET_SELECTED = 15
    PARAMETER_SET_ACKNOWLEDGE = 16
    PARAMETER_SET_UNSUBSCRIBE = 17
    SELECT_PARAMETER_SET = 18
    SET_BATCH_SIZE = 19
    RESET_BATCH = 20
    JOBS = 30
    JOBS_REPLY = 31
    JOB = 32
    JOB_REPLY = 33
    JOB_SUBSCRIBE = 34
    JOB_INFO = 35
    JOB_ACKNOWLEDGE = 36
    JOB_UNSUBSCRIBE = 37
    SELECT_JOB = 38
    RESTART_JOB = 39
    TOOL = 40
    TOOL_REPLY = 41
    DISABLE_TOOL = 42
    ENABLE_TOOL = 43
    IDENTIFIER = 50
    IDENTIFIER_SUBSCRIBE = 51
    IDENTIFIER_CHANGED = 52
    IDENTIFIER_ACKNOWLEDGE = 53
    IDENTIFIER_UNSUBSCRIBE = 54
    RESULT_SUBSCRIBE = 60
    RESULT = 61
    RESULT_ACKNOWLEDGE = 62
    RESULT_UNSUBSCRIBE = 63
    OLD_RESULT = 64
    OLD_RESULT_REPLY = 65
    ALARM_SUBSCRIBE = 70
    ALARM = 71
    ALARM_ACKNOWLEDGE = 72
    ALARM_UNSUBSCRIBE = 73
    ALARM_ACKNOWLEDGED = 74
    ALARM_ACKNOWLEDGED_ACKNOWLEDGE = 75
    ALARM_STATUS = 76
    ALARM_STATUS_ACKNOWLEDGE = 77
    ACKNOWLEDGE_ALARM = 78
    TIME = 80
    TIME_REPLY = 81
    SET_TIME = 82
    SPINDLES_SUBSCRIBE = 100
    SPINDLES_RESULT = 101
    SPINDLES_ACKNOWLEDGE = 102
    SPINDLES_UNSUBSCRIBE = 103
    ABORT_JOB = 127
    RELAY_SUBSCRIBE = 216
    RELAY = 217
    RELAY_ACKNOWLEDGE = 218
    RELAY_UNSUBSCRIBE = 219
    TRACE = 900
    TRACE_PARAMETERS = 901
    LINK_ACKNOWLEDGE = 9997
    LINK_ERROR = 9998
    KEEP_ALIVE = 9999


REPLIES = frozenset(
    {
        Mid.STARTED,
        Mid.DECLINED,
        Mid.ACCEPTED,
        Mid.PARAMETER_SETS_REPLY,
        Mid.PARAMETER_SET_REPLY,
        Mid.JOBS_REPLY,
        Mid.JOB_REPLY,
        Mid.TOOL_REPLY,
        Mid.OLD_RESULT_REPLY,
        Mid.TIME_REPLY,
    }
)
"""The messages that a controller sends as answers only."""


SUBSTITUTED_BY_LINK = frozenset(
    {
        Mid.ACCEPTED,
        Mid.PARAMETER_SET_ACKNOWLEDGE,
        Mid.JOB_ACKNOWLEDGE,
        Mid.IDENTIFIER_ACKNOWLEDGE,
        Mid.RESULT_ACKNOWLEDGE,
        Mid.ALARM_ACKNOWLEDGE,
        Mid.ALARM_ACKNOWLEDGED_ACKNOWLEDGE,
        Mid.ALARM_STATUS_ACKNOWLEDGE,
        Mid.SPINDLES_ACKNOWLEDGE,
        Mid.RELAY_ACKNOWLEDGE,
    }
)
"""The acknowledgements of a client that are not used with the link layer (3.2.2 of the specification)."""


class Decline(IntEnum):
    """The errors of MID 0004 that the gateway acts on."""

    INVALID_DATA = 1
    NO_PARAMETER_SET = 2
    RESULTS_SUBSCRIBED = 9
    RESULTS_NOT_SUBSCRIBED = 10
    ALARMS_SUBSCRIBED = 11
    NO_RESULT = 15
    BUSY = 16
    NO_JOB = 17
    JOB_NOT_SET = 20
    NO_JOB_RUNS = 21
    TOOL_LOCKED = 27
    SPINDLES_SUBSCRIBED = 33
    OTHER_ACTOR = 35
    SUBSCRIBED = 71
    NOT_SUBSCRIBED = 72
    MID_TO_SUBSCRIBE = 73
    REVISION_TO_SUBSCRIBE = 74
    REQUESTED_MID = 75
    REQUESTED_REVISION = 76
    REQUESTED_DATA = 77
    DATA_TO_SUBSCRIBE = 78
    COMMAND_FAILED = 79
    RELAY_SUBSCRIBED = 84
    CONNECTED_ALREADY = 96
    REVISION = 97
    TIMEOUT = 98
    UNKNOWN_MID = 99


DECLINES: Mapping[int, str] = MappingProxyType(
    {
        1: "invalid data",
        2: "there is no such parameter set",
        3: "the parameter set cannot be set",
        4: "the parameter set does not run",
        6: "the identifier is subscribed to already",
        7: "the identifier is not subscribed to",
        8: "the controller takes identifiers from another source",
        9: "results are subscribed to already",
        10: "results are not subscribed to",
        11: "alarms are subscribed to already",
        12: "alarms are not subscribed to",
        13: "the selection of parameter sets is subscribed to already",
        14: "the selection of parameter sets is not subscribed to",
        15: "there is no such result",
        16: "the controller is busy and refuses the connection",
        17: "there is no such job",
        18: "jobs are subscribed to already",
        19: "jobs are not subscribed to",
        20: "the job cannot be set",
        21: "no job runs",
        22: "a dynamic job cannot be executed",
        25: "another program controls the programming",
        27: "the tool cannot be reached",
        28: "the job is being aborted",
        30: "the controller is not the master of its spindles",
        33: "results of several spindles are subscribed to already",
        35: "another client has the control",
        42: "the controller takes identifiers from another source",
        58: "there is no alarm",
        59: "the tool is in use",
        71: "the subscription exists already",
        72: "the subscription does not exist",
        73: "the message to subscribe to is not known",
        74: "the revision to subscribe to is not supported",
        75: "the requested message is not known",
        76: "the requested revision is not supported",
        77: "the requested data are not supported",
        78: "the data to subscribe to are not supported",
        79: "the command failed",
        84: "the relay is subscribed to already",
        92: "the controller takes no commands at present",
        95: "the controller is in manual mode",
        96: "another client is connected already",
        97: "the revision is not supported",
        98: "the controller took too long inside",
        99: "the message is not known",
    }
)
"""What an error of MID 0004 means."""


def _revisions(*steps: Layout) -> dict[int, Layout]:
    """Return the table of each revision; each adds fields to the one before."""
    return dict(enumerate(accumulate(steps), 1))


_STARTED = _revisions(
    numbered(("cell", 4), ("channel", 2), ("name", 25, _TEXT)),
    numbered(("supplier", 3, _TEXT), start=4, optional_from="supplier"),
    numbered(
        ("protocol", 19, _TEXT),
        ("software", 19, _TEXT),
        ("tool_software", 19, _TEXT),
        start=5,
        optional_from="protocol",
    ),
    numbered(("unit", 24, _TEXT), ("serial", 10, _TEXT), start=8, optional_from="unit"),
    numbered(("system_type", 3), ("system_subtype", 3), start=10, optional_from="system_type"),
    numbered(
        ("sequence_numbers", 1),
        ("parts", 1),
        ("station_id", 10, _TEXT),
        ("station_name", 25, _TEXT),
        ("client", 1),
        start=12,
        optional_from="sequence_numbers",
    ),
)
_PARAMETER_SET = numbered(
    ("id", 3),
    ("name", 25, _TEXT),
    ("direction", 1),
    ("batch_size", 2),
    ("torque_min", 6, _NM),
    ("torque_max", 6, _NM),
    ("torque_target", 6, _NM),
    ("angle_min", 5),
    ("angle_max", 5),
    ("angle_target", 5),
)
_JOB = numbered(
    ("id", 2), ("status", 1), ("batch_mode", 1), ("batch_size", 4), ("batch_counter", 4), ("time", 19, _DATE)
)
_JOB_2 = numbered(
    ("id", 4), ("status", 1), ("batch_mode", 1), ("batch_size", 4), ("batch_counter", 4), ("time", 19, _DATE)
)
_JOB_DATA = (
    ("name", 25, _TEXT),
    ("forced_order", 1),
    ("first_seconds", 4),
    ("seconds", 5),
    ("batch_mode", 1),
    ("lock_at_done", 1),
    ("line_control", 1),
    ("repeat", 1),
    ("loosening", 1),
    ("repair", 1),
    ("parameter_sets", 2),
)
_TOOL = numbered(("serial", 14, _TEXT), ("tightenings", 10), ("calibrated", 19, _DATE), ("controller", 10, _TEXT))
_IDENTIFIERS = numbered(("identifier", 25, _TEXT), ("part_2", 25, _TEXT), ("part_3", 25, _TEXT), ("part_4", 25, _TEXT))
_ALARM = numbered(("code", 4, _TEXT), ("controller_ready", 1), ("tool_ready", 1), ("time", 19, _DATE))
_ALARM_STATUS = numbered(
    ("active", 1), ("code", 4, _TEXT), ("controller_ready", 1), ("tool_ready", 1), ("time", 19, _DATE)
)
_NUMBERS = FieldKind.NUMBERS
_MID = DataField("mid", 4)
_SUBSCRIPTION: Layout = (_MID, DataField("revision", 3), DataField("extra_length", 2))
_TIME: Layout = (DataField("time", 19, _DATE),)

LAYOUTS: Mapping[int, Mapping[int, Layout]] = MappingProxyType(
    {
        Mid.STARTED: _STARTED,
        Mid.DECLINED: {
            1: (DataField("mid", 4), DataField("error", 2)),
            2: (DataField("mid", 4), DataField("error", 3)),
        },
        Mid.ACCEPTED: {1: (_MID,)},
        Mid.SUBSCRIBE_DATA: {1: _SUBSCRIPTION},
        Mid.UNSUBSCRIBE_DATA: {1: _SUBSCRIPTION},
        Mid.PARAMETER_SETS_REPLY: {1: (DataField("ids", 3, _NUMBERS, count=3),)},
        Mid.PARAMETER_SET: {1: (DataField("id", 3),)},
        Mid.PARAMETER_SET_REPLY: {1: _PARAMETER_SET},
        Mid.PARAMETER_SET_SELECTED: {1: (DataField("id", 3), DataField("changed", 19, _DATE))},
        Mid.SELECT_PARAMETER_SET: {1: (DataField("id", 3),)},
        Mid.SET_BATCH_SIZE: {1: (DataField("id", 3), DataField("size", 2))},
        Mid.RESET_BATCH: {1: (DataField("id", 3),)},
        Mid.JOBS_REPLY: {
            1: (DataField("ids", 2, _NUMBERS, count=2),),
            2: (DataField("ids", 4, _NUMBERS, count=4),),
        },
        Mid.JOB: {1: (DataField("id", 2),), 2: (DataField("id", 4),)},
        Mid.JOB_REPLY: {1: numbered(("id", 2), *_JOB_DATA), 2: numbered(("id", 4), *_JOB_DATA)},
        Mid.JOB_INFO: {1: _JOB, 2: _JOB_2},
        Mid.SELECT_JOB: {1: (DataField("id", 2),), 2: (DataField("id", 4),)},
        Mid.RESTART_JOB: {1: (DataField("id", 2),), 2: (DataField("id", 4),)},
        Mid.TOOL_REPLY: {1: _TOOL},
        Mid.IDENTIFIER: {1: (DataField("identifier", 25, _TEXT),)},
        Mid.IDENTIFIER_CHANGED: {1: (DataField("identifier", 25, _TEXT),), 2: _IDENTIFIERS},
        Mid.RESULT: LATEST_RESULT,
        Mid.OLD_RESULT: {1: (DataField("result", 10),)},
        Mid.OLD_RESULT_REPLY: OLD_RESULT,
        Mid.ALARM: {1: _ALARM},
        Mid.ALARM_ACKNOWLEDGED: {1: (DataField("code", 4, _TEXT),)},
        Mid.ALARM_STATUS: {1: _ALARM_STATUS},
        Mid.RELAY_SUBSCRIBE: {1: (DataField("relay", 3),)},
        Mid.RELAY: {1: numbered(("relay", 3), ("active", 1))},
        Mid.RELAY_UNSUBSCRIBE: {1: (DataField("relay", 3),)},
        Mid.TIME_REPLY: {1: _TIME},
        Mid.SET_TIME: {1: _TIME},
        Mid.LINK_ACKNOWLEDGE: {1: (_MID,)},
        Mid.LINK_ERROR: {1: (_MID, DataField("error", 4))},
    }
)
"""The table of fields of each message that has data, by revision. A message that is not here has none."""


def revisions_of(mid: int) -> tuple[int, ...]:
    """Return the revisions of a message with a table, the newest first; 1 for a message without data."""
    return tuple(sorted(LAYOUTS.get(mid, {1: ()}), reverse=True))


def layout_of(mid: int, revision: int) -> Layout:
    """Return the table of a message: that of the newest known revision which is not newer."""
    tables = LAYOUTS.get(mid, {})
    known = [table for table in tables if table <= revision]
    return tables[max(known)] if known else ()


def parse_message(frame: MidFrame) -> dict[str, Any]:
    """Return the fields of a message; raises as `decode_data`, with the number of the message."""
    try:
        return decode_data(layout_of(frame.mid, frame.revision), frame.data)
    except Refused as refusal:
        message = Text.of(
            "MID {mid:04d} revision {revision}: {refusal}",
            mid=frame.mid,
            revision=frame.revision,
            refusal=refusal.message,
        )
        raise Refused(refusal.kind, message) from refusal


def new_message(mid: int, revision: int = 1, /, **values: Any) -> MidFrame:
    """Return a message with these fields; raises as `encode_data`."""
    return MidFrame(mid, encode_data(layout_of(mid, revision), values), revision)


def named_mids(request: MidFrame) -> frozenset[int]:
    """Return the numbers that MID 0005 and 0004 may carry as an answer to a request.

    MID 0008 and 0009 are answered with the message subscribed to; some controllers answer with 0008 and 0009.
    """
    if request.mid not in {Mid.SUBSCRIBE_DATA, Mid.UNSUBSCRIBE_DATA}:
        return frozenset({request.mid})
    return frozenset({request.mid, int(request.data[:4])})


def decline_of(frame: MidFrame) -> tuple[int, int]:
    """Return the number of the message that MID 0004 declines, and the error."""
    fields = parse_message(frame)
    return fields["mid"] or 0, fields["error"] or 0
