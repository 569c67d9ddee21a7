"""The ports for what is served with telemetry only: the methods of conditions, and history."""

from typing import Any, Protocol

from asyncua import ua


class MethodExtension(Protocol):
    """Performs method calls that need the session of the caller."""

    def serves(self, request: ua.CallMethodRequest) -> bool:
        """Return whether the call is for this extension."""

    async def call(self, request: ua.CallMethodRequest, session: Any) -> ua.CallMethodResult:
        """Perform a method call for a session."""


class HistoryService(Protocol):
    """Reads history for a session."""

    async def read(self, params: ua.HistoryReadParameters, session: Any) -> list[ua.HistoryReadResult]:
        """Read the history of nodes. Raises ServiceError for a request that is invalid as a whole."""


class NoHistory:
    """Refuses: there is no history, and asyncua would return an empty one."""

    async def read(self, params: ua.HistoryReadParameters, _session: Any) -> list[ua.HistoryReadResult]:
        """Return that no node has history."""
        unsupported = ua.StatusCode(ua.StatusCodes.BadHistoryOperationUnsupported)
        return [ua.HistoryReadResult(StatusCode=unsupported) for _ in params.NodesToRead]
