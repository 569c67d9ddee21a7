"""The messages that a simulated Open Protocol controller takes, and its answers."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from edge.features.openprotocol.protocol.frame import MidFrame
from edge.features.openprotocol.protocol.jobs import encode_job
from edge.features.openprotocol.protocol.mids import TOOL_LOCKED_RELAY, Decline, Mid, new_message, parse_message
from edge.features.openprotocol.protocol.spindles import encode_spindles
from edge.features.openprotocol.protocol.trace import ANGLE, TORQUE, encode_curve, encode_plot
from edge.features.openprotocol.simulated.server import DeclineError, Handler, ServedClient, named_mid

if TYPE_CHECKING:
    from edge.features.openprotocol.simulated.controller import TighteningController

INTERVAL_MS = 1
_UNITS: Mapping[int, str] = MappingProxyType({ANGLE: "050", TORQUE: "001"})
_FIELDS: Mapping[int, str] = MappingProxyType({ANGLE: "angle", TORQUE: "torque"})
_EXPONENTS: Mapping[int, int] = MappingProxyType({ANGLE: 1, TORQUE: 3})
_DIVISOR = 100
_LOW_LIMIT, _HIGH_LIMIT = "02111", "02112"
"""Parameters of this simulator: the ids of a real controller are in its list of parameters."""


def spindles_of(result: Mapping[str, Any], count: int) -> bytes:
    """Return the data of MID 0101 for a result: `count` spindles, of which the last one has its status."""
    good = {"channel": 1, "status": 1, "torque_status": 1, "angle_status": 1, "angle": result["angle"]}
    records = [good | {"spindle": n, "torque": result["torque_target"]} for n in range(1, count)]
    last = {"spindle": count, "status": result["status"], "torque_status": result["status"], "torque": result["torque"]}
    return encode_spindles({**result, "result": result["result"] % 100_000}, [*records, good | last])


def plot_of(result: Mapping[str, Any]) -> bytes:
    """Return the data of MID 0901 for a result: its limits of torque."""
    limits = {_LOW_LIMIT: f"{result['torque_min']:g}", _HIGH_LIMIT: f"{result['torque_max']:g}"}
    return encode_plot(result["result"], result["time"], limits)


def curve_of(result: Mapping[str, Any], kind: int, points: int) -> bytes:
    """Return the data of MID 0900 for a result: `points` samples that end with its value."""
    final, last = result[_FIELDS[kind]] * _DIVISOR, max(points - 1, 1)
    samples = [round(final * (n / last) ** _EXPONENTS[kind]) for n in range(points)]
    return encode_curve(
        result["result"],
        result["time"],
        kind,
        _UNITS[kind],
        samples,
        divisor=_DIVISOR,
        interval_ms=INTERVAL_MS,
    )


HIGHEST: Mapping[int, int] = MappingProxyType(
    {
        **dict.fromkeys((Mid.START, Mid.RESULT_SUBSCRIBE, Mid.OLD_RESULT), 6),
        **dict.fromkeys((Mid.JOBS, Mid.JOB, Mid.JOB_SUBSCRIBE, Mid.SELECT_JOB, Mid.RESTART_JOB), 2),
    }
)
"""The newest revision of each message that the simulated controller accepts; 1 of any other."""

_SUBSCRIPTIONS: Mapping[int, tuple[int, int]] = MappingProxyType(
    {
        Mid.PARAMETER_SET_SUBSCRIBE: (Mid.PARAMETER_SET_SELECTED, 13),
        Mid.JOB_SUBSCRIBE: (Mid.JOB_INFO, 18),
        Mid.IDENTIFIER_SUBSCRIBE: (Mid.IDENTIFIER_CHANGED, 6),
        Mid.RESULT_SUBSCRIBE: (Mid.RESULT, Decline.RESULTS_SUBSCRIBED),
        Mid.SPINDLES_SUBSCRIBE: (Mid.SPINDLES_RESULT, Decline.SPINDLES_SUBSCRIBED),
        Mid.ALARM_SUBSCRIBE: (Mid.ALARM, Decline.ALARMS_SUBSCRIBED),
    }
)
"""Subscription → the message that it is for, and the error of a second subscription."""
_ENDS: Mapping[int, int] = MappingProxyType(
    {
        Mid.PARAMETER_SET_UNSUBSCRIBE: Mid.PARAMETER_SET_SELECTED,
        Mid.JOB_UNSUBSCRIBE: Mid.JOB_INFO,
        Mid.IDENTIFIER_UNSUBSCRIBE: Mid.IDENTIFIER_CHANGED,
        Mid.RESULT_UNSUBSCRIBE: Mid.RESULT,
        Mid.SPINDLES_UNSUBSCRIBE: Mid.SPINDLES_RESULT,
        Mid.ALARM_UNSUBSCRIBE: Mid.ALARM,
    }
)
_ACKNOWLEDGEMENTS = (
    Mid.PARAMETER_SET_ACKNOWLEDGE,
    Mid.JOB_ACKNOWLEDGE,
    Mid.IDENTIFIER_ACKNOWLEDGE,
    Mid.ALARM_ACKNOWLEDGE,
    Mid.ALARM_ACKNOWLEDGED_ACKNOWLEDGE,
    Mid.ALARM_STATUS_ACKNOWLEDGE,
    Mid.RELAY_ACKNOWLEDGE,
)
_EXTRA_DATA = 9
"""Where the extra data of MID 0008 and 0009 begin."""
_NOT_SUBSCRIBED = 1
"""What is added to the error of a second subscription, for the end of one that does not exist."""


def handlers_of(controller: "TighteningController") -> Mapping[int, Handler]:
    """Return the handler of each message that the controller knows."""
    return {
        Mid.START: partial(_start, controller),
        Mid.STOP: _stop,
        **dict.fromkeys(_SUBSCRIPTIONS, partial(_subscribe, controller)),
        **dict.fromkeys(_ENDS, _unsubscribe),
        **dict.fromkeys(_ACKNOWLEDGEMENTS, lambda _client, _message: ()),
        Mid.RELAY_SUBSCRIBE: partial(_subscribe_to_relay, controller),
        Mid.RELAY_UNSUBSCRIBE: _unsubscribe_from_relay,
        Mid.SUBSCRIBE_DATA: _subscribe_to_data,
        Mid.UNSUBSCRIBE_DATA: _unsubscribe_from_data,
        Mid.ACCEPTED: lambda _client, _message: (),
        Mid.SPINDLES_ACKNOWLEDGE: partial(_acknowledge_result, controller),
        Mid.RESULT_ACKNOWLEDGE: partial(_acknowledge_result, controller),
        Mid.PARAMETER_SETS: lambda _, message: _reply(message, Mid.PARAMETER_SETS_REPLY, ids=controller.parameter_sets),
        Mid.PARAMETER_SET: partial(_describe_parameter_set, controller),
        Mid.SELECT_PARAMETER_SET: _command(lambda fields: controller.select_parameter_set(fields["id"] or 0)),
        Mid.SET_BATCH_SIZE: _command(lambda fields: controller.set_batch_size(fields["id"] or 0, fields["size"] or 1)),
        Mid.RESET_BATCH: _command(lambda fields: controller.reset_batch(fields["id"] or 0)),
        Mid.JOBS: lambda _, message: _reply(message, Mid.JOBS_REPLY, ids=controller.jobs),
        Mid.JOB: partial(_describe_job, controller),
        Mid.RESTART_JOB: _command(lambda fields: controller.restart_job(fields["id"] or 0)),
        Mid.SELECT_JOB: _command(lambda fields: controller.select_job(fields["id"] or 0)),
        Mid.ABORT_JOB: _command(lambda _: controller.abort_job()),
        Mid.TOOL: lambda _, message: _reply(
            message, Mid.TOOL_REPLY, serial="SIMULATED", tightenings=len(controller.results), controller="SIM1"
        ),
        Mid.DISABLE_TOOL: _command(lambda _: controller.disable()),
        Mid.ENABLE_TOOL: _command(lambda _: controller.enable()),
        Mid.IDENTIFIER: _command(lambda fields: controller.set_identifier(fields["identifier"])),
        Mid.OLD_RESULT: partial(_old_result, controller),
        Mid.ACKNOWLEDGE_ALARM: _command(lambda _: controller.clear_alarm()),
        Mid.TIME: lambda _, message: _reply(message, Mid.TIME_REPLY, time=controller.time),
        Mid.SET_TIME: _command(lambda fields: controller.set_time(fields["time"])),
    }


def _start(controller: "TighteningController", _client: ServedClient, message: MidFrame) -> Sequence[MidFrame]:
    numbers = int(controller.link_layer)
    return _reply(
        message,
        Mid.STARTED,
        cell=1,
        channel=1,
        name=controller.name,
        supplier=controller.supplier,
        protocol="2.8",
        software="simulated",
        sequence_numbers=numbers,
        parts=numbers,
    )


def _stop(client: ServedClient, message: MidFrame) -> Sequence[MidFrame]:
    client.subscriptions.clear()
    return _accept(message)


def _subscribe(controller: "TighteningController", client: ServedClient, message: MidFrame) -> Sequence[MidFrame]:
    mid, error = _SUBSCRIPTIONS[message.mid]
    if mid in client.subscriptions:
        raise DeclineError(error)
    client.subscriptions[mid] = message.revision
    if mid == Mid.ALARM:
        client.subscriptions |= {Mid.ALARM_STATUS: 1, Mid.ALARM_ACKNOWLEDGED: 1}
    # The present value follows at once where there is one.
    if mid == Mid.IDENTIFIER_CHANGED:
        return (*_accept(message), new_message(mid, identifier=controller.identifier))
    if mid == Mid.PARAMETER_SET_SELECTED:
        return (*_accept(message), new_message(mid, id=controller.parameter_set, changed=controller.time))
    if mid == Mid.ALARM and controller.alarm:
        return (*_accept(message), new_message(Mid.ALARM_STATUS, active=1, code=controller.alarm, time=controller.time))
    return _accept(message)


def _subscribe_to_relay(
    controller: "TighteningController", client: ServedClient, message: MidFrame
) -> Sequence[MidFrame]:
    if parse_message(message)["relay"] != TOOL_LOCKED_RELAY:
        raise DeclineError(Decline.INVALID_DATA)
    if Mid.RELAY in client.subscriptions:
        raise DeclineError(Decline.RELAY_SUBSCRIBED)
    client.subscriptions[Mid.RELAY] = 1
    return (*_accept(message), new_message(Mid.RELAY, relay=TOOL_LOCKED_RELAY, active=int(not controller.enabled)))


def _unsubscribe_from_relay(client: ServedClient, message: MidFrame) -> Sequence[MidFrame]:
    client.subscriptions.pop(Mid.RELAY, None)
    return _accept(message)


def _subscribe_to_data(client: ServedClient, message: MidFrame) -> Sequence[MidFrame]:
    fields = parse_message(message)
    mid, extra = fields["mid"] or 0, message.data[_EXTRA_DATA:]
    if mid not in {Mid.TRACE, Mid.TRACE_PARAMETERS}:
        raise DeclineError(Decline.MID_TO_SUBSCRIBE)
    if len(extra) != (fields["extra_length"] or 0) or (mid == Mid.TRACE and not _is_of_traces(extra)):
        raise DeclineError(Decline.INVALID_DATA)
    if mid in client.subscriptions:
        raise DeclineError(Decline.SUBSCRIBED)
    if mid == Mid.TRACE_PARAMETERS and Mid.TRACE not in client.subscriptions:
        # The parameters of plots are those of subscribed traces.
        raise DeclineError(Decline.NOT_SUBSCRIBED)
    client.subscriptions[mid] = 1
    return _accept(message)


def _is_of_traces(extra: bytes) -> bool:
    """Return whether extra data ask for new traces: alternative, time stamp, index, their number, their types."""
    number, types = extra[30:32], extra[32:]
    return extra[:1] == b"0" and number.isdigit() and len(types) == 3 * int(number) and types.isdigit()


def _unsubscribe_from_data(client: ServedClient, message: MidFrame) -> Sequence[MidFrame]:
    if client.subscriptions.pop(parse_message(message)["mid"] or 0, None) is None:
        raise DeclineError(Decline.NOT_SUBSCRIBED)
    return _accept(message)


def _unsubscribe(client: ServedClient, message: MidFrame) -> Sequence[MidFrame]:
    mid = _ENDS[message.mid]
    if mid not in client.subscriptions:
        raise DeclineError(next(error for number, error in _SUBSCRIPTIONS.values() if number == mid) + _NOT_SUBSCRIBED)
    del client.subscriptions[mid]
    return _accept(message)


def _acknowledge_result(controller: "TighteningController", _: ServedClient, _message: MidFrame) -> Sequence[MidFrame]:
    controller.acknowledge()
    return ()


def _describe_parameter_set(
    controller: "TighteningController", _: ServedClient, message: MidFrame
) -> Sequence[MidFrame]:
    return _reply(message, Mid.PARAMETER_SET_REPLY, **controller.describe(parse_message(message)["id"] or 0))


def _describe_job(controller: "TighteningController", _: ServedClient, message: MidFrame) -> Sequence[MidFrame]:
    name, steps = controller.describe_job(number := parse_message(message)["id"] or 0)
    return (encode_job(message.revision, steps, id=number, name=name),)


def _old_result(controller: "TighteningController", _: ServedClient, message: MidFrame) -> Sequence[MidFrame]:
    number = parse_message(message)["result"] or max(controller.results, default=0)
    if number not in controller.results:
        raise DeclineError(Decline.NO_RESULT)
    return _reply(message, Mid.OLD_RESULT_REPLY, **controller.results[number])


def _command(act: Callable[[dict[str, Any]], None]) -> Handler:
    """Return the handler of a command that is accepted when `act` does not decline its fields."""

    def handle(_: ServedClient, message: MidFrame) -> Sequence[MidFrame]:
        act(parse_message(message))
        return _accept(message)

    return handle


def _accept(message: MidFrame) -> Sequence[MidFrame]:
    return (new_message(Mid.ACCEPTED, mid=named_mid(message)),)


def _reply(message: MidFrame, mid: Mid, **values: Any) -> Sequence[MidFrame]:
    return (new_message(mid, message.revision, **values),)
