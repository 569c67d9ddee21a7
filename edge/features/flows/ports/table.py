"""Finds the handler of a query or an action; without a handler on this gateway the node fails with the reason."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from edge.features.flows.nodes.kind import NodeError
from edge.features.flows.nodes.outside import (
    Action,
    AppendToFile,
    CommandEquipment,
    HttpResource,
    JobResults,
    LatestValue,
    PostResource,
    PublishMessage,
    Query,
    RaiseAlarm,
    RedisValue,
    SampleWindow,
    StartJob,
    VariableValue,
    WriteTag,
    WriteVariable,
)
from edge.foundation.text import Text

Handler = Callable[[Any, str], Awaitable[Any]]
"""A function of a query or an action and its id that returns a JSON value."""

Handlers = Mapping[type, Handler]
"""By the type of the query or the action."""

_NAMES: Final[Mapping[type, Text]] = {
    LatestValue: Text.of("tags"),
    SampleWindow: Text.of("tags"),
    WriteTag: Text.of("tags"),
    JobResults: Text.of("job results"),
    VariableValue: Text.of("OPC UA variables of equipment"),
    WriteVariable: Text.of("OPC UA variables of equipment"),
    HttpResource: Text.of("HTTP"),
    PostResource: Text.of("HTTP"),
    RedisValue: Text.of("foreign Redis servers"),
    PublishMessage: Text.of("MQTT: it has no broker ([mqtt] url)"),
    StartJob: Text.of("jobs"),
    RaiseAlarm: Text.of("alarms"),
    AppendToFile: Text.of("files"),
    CommandEquipment: Text.of("commands outside of jobs"),
}


class HandlerTable:
    """The handlers of the queries and actions of nodes on a gateway."""

    def __init__(self, handlers: Handlers) -> None:
        self._handlers = dict(handlers)

    async def read(self, query: Query) -> Any:
        """Return the answer to a query. Raises the errors of its handler, or NodeError without a handler."""
        return await self._handle(query, "")

    async def act(self, action: Action, action_id: str) -> Any:
        """Perform an action and return its result. Raises the errors of its handler, or NodeError without a handler."""
        return await self._handle(action, action_id)

    async def _handle(self, asked: Query | Action, action_id: str) -> Any:
        handler = self._handlers.get(type(asked))
        if handler is None:
            raise NodeError(Text.of("this gateway does not serve {what}", what=_NAMES[type(asked)]))
        return await handler(asked, action_id)
