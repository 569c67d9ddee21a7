"""Performs one attempt at a node: computes, asks the plant or acts on it, within limits of time and size."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final, Protocol, assert_never

import msgspec
import structlog

from edge.features.flows.cycle import TIMEOUT, AttemptCompleted, AttemptFailed, AttemptInterrupted, Outcome
from edge.features.flows.nodes.kind import Act, Attempt, Compute, NodeError, Output, Read
from edge.features.flows.nodes.outside import Action, Query
from edge.features.flows.plan import LONGEST_TIMEOUT_S, PlannedNode
from edge.foundation.errors import Unavailable
from edge.foundation.text import Text

logger = structlog.get_logger(__name__)

LARGEST_OUTPUT: Final = 1 << 20
"""In bytes of JSON."""
_MOST_ITEMS: Final = 2000
"""A computation over more items runs in a thread, so that it does not hold the event loop."""


class OutcomeUnknownError(Exception):
    """An action that may or may not have taken effect."""


class Outside(Protocol):
    """What nodes read from and act on.

    Both calls raise NodeError when it was refused, and Unavailable when it was not reached and nothing took effect.
    """

    async def read(self, query: Query) -> Any:
        """Return the answer to a query, a JSON value."""
        ...

    async def act(self, action: Action, action_id: str) -> Any:
        """Perform an action and return its result as a JSON value; raises OutcomeUnknownError.

        The same `action_id` always belongs to the same action: an attempt that is repeated has it, too.
        """
        ...


def compute_now(node: PlannedNode, attempt: Attempt) -> Outcome | None:
    """Return the outcome of a short computation; None when the attempt has to run in the background."""
    work = node.kind.work
    if not isinstance(work, Compute) or _size(attempt.inputs) > _MOST_ITEMS:
        return None
    try:
        output: Output = work.run(node.config, attempt)
        if output.delay_ms:
            return None
        return AttemptCompleted(node.id, checked(output))
    except NodeError as error:
        return AttemptFailed(node.id, error.text)
    except Exception as error:  # noqa: BLE001 - a defect in one node must not stop the others
        return _defect(node, error)


async def perform(node: PlannedNode, attempt: Attempt, action_id: str, outside: Outside) -> Outcome:
    """Perform an attempt and return its outcome.

    An attempt that ran out of time, of a kind that must not run twice, is interrupted: its outcome is unknown.
    """
    limit_s = LONGEST_TIMEOUT_S if node.timeout_ms is None else node.timeout_ms / 1000
    limit = asyncio.timeout(limit_s)
    try:
        async with limit:
            output = await _work(node, attempt, action_id, outside)
            if output.delay_ms:
                await asyncio.sleep(output.delay_ms / 1000)
            return AttemptCompleted(node.id, checked(output))
    except TimeoutError as error:
        if not limit.expired():
            return _defect(node, error)
        return AttemptFailed(node.id, TIMEOUT) if node.kind.repeatable else AttemptInterrupted(node.id)
    except OutcomeUnknownError as error:
        logger.warning("flow node outcome unknown", flow=attempt.flow_id, node=node.id, reason=str(error))
        return AttemptInterrupted(node.id)
    except NodeError as error:
        return AttemptFailed(node.id, error.text)
    except Unavailable as error:
        return AttemptFailed(node.id, error.text)
    except Exception as error:  # noqa: BLE001 - a defect in one node must not stop the others
        return _defect(node, error)


async def _work(node: PlannedNode, attempt: Attempt, action_id: str, outside: Outside) -> Output:
    work = node.kind.work
    match work:
        case Compute(run=run):
            computed: Output = await asyncio.to_thread(run, node.config, attempt)
            return computed
        case Read(query=query):
            return Output(await outside.read(query(node.config, attempt)))
        case Act(action=action):
            return Output(await outside.act(action(node.config, attempt), action_id))
        case _:
            assert_never(work)


def checked(output: Output) -> Output:
    """Return an output that can be stored; raises NodeError."""
    try:
        size = len(msgspec.json.encode(output.value))
    except (TypeError, ValueError, RecursionError) as error:
        raise NodeError(Text.of("the output is not JSON: {reason}", reason=error)) from None
    if size > LARGEST_OUTPUT:
        raise NodeError(
            Text.of("the output has {size} bytes of JSON; at most {most} are allowed", size=size, most=LARGEST_OUTPUT)
        )
    return output


def _size(inputs: Mapping[str, Any]) -> int:
    return sum(len(value) for value in inputs.values() if isinstance(value, (list, tuple, dict, str)))


def _defect(node: PlannedNode, error: Exception) -> Outcome:
    logger.error("flow node met a defect", kind=node.kind.name, node=node.id, exc_info=error)
    reason = Text.of("the node met a defect: {name}: {reason}", name=type(error).__name__, reason=error)
    return AttemptFailed(node.id, reason)
