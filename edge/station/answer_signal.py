"""Converts what equipment answers to signals of a run, with the limit of what a run keeps; finds its results again."""

from collections.abc import Mapping
from typing import Any, TypeGuard

import msgspec

from edge.foundation.errors import Refused
from edge.model.acceptance import MAX_BYTES, MAX_TEXT_LENGTH
from edge.ports.result_trace import MOST_LEVELS, RESULTS_MEMBER
from edge.sfc.signal import Answer, Unknown
from edge.station.equipment import EquipmentAnswer, OutcomeUnknown


def signal_of(answer: EquipmentAnswer | OutcomeUnknown) -> Answer | Unknown:
    """Return the signal of an answer; a result that exceeds the limit is a failure."""
    if isinstance(answer, OutcomeUnknown):
        return Unknown(answer.command_id, answer.reason[:MAX_TEXT_LENGTH])
    try:
        data, error = kept_data(answer.data), answer.error and answer.error[:MAX_TEXT_LENGTH]
    except Refused as refusal:
        data, error = None, answer.error or f"its result is too large: {refusal.message}"
    return Answer(answer.command_id, ok=error is None, data=data, error=error)


def is_result(signal: Answer | Unknown) -> TypeGuard[Answer]:
    """Return whether an answer contains a result: without one it confirms the stop of its command."""
    return isinstance(signal, Answer) and signal.error is None and signal.data is not None


def error_of(answer: EquipmentAnswer | OutcomeUnknown) -> str | None:
    """Return why the equipment did not carry out a command, or may not have; None when it did."""
    return answer.reason if isinstance(answer, OutcomeUnknown) else answer.error


def kept_data(data: object) -> Any:
    """Return data as the store returns them: with a cached run and a loaded one the decision is the same.

    Raises Refused(`too_large`): with each change of the job, its results go to Redis, to the MES and to OPC UA clients.
    """
    written = msgspec.json.encode(data)
    if len(written) > MAX_BYTES:
        problem = f"{len(written)} bytes of JSON, where {MAX_BYTES} can be kept"
        raise Refused("too_large", problem, "Send what recipe and MES need, and where the rest is to be found.")
    return msgspec.json.decode(written)


def holds_result(data: object, result_id: str, levels: int = MOST_LEVELS) -> bool:
    """Return whether the data of an answer are the result with an id, or hold it."""
    if not isinstance(data, Mapping) or not levels:
        return False
    parts = data.get(RESULTS_MEMBER)
    held = parts.values() if isinstance(parts, Mapping) else ()
    return data.get("result_id") == result_id or any(holds_result(value, result_id, levels - 1) for value in held)
