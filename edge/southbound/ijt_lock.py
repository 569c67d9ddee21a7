"""The lock of a joining tool: it is enabled for a command only, and stays disabled if another system disabled it."""

from edge.errors import Refused
from edge.links.opcua import ClientSession, Node
from edge.southbound.ijt_methods import IjtMethods
from edge.southbound.ijt_results import ControllerState

_DISABLED = "another system has disabled the tool: enable it there"


class ToolLock:
    """Enables and disables one tool, identified by its ProductInstanceUri; an empty `uri` means the only tool.

    Without `is_on`, the tool stays enabled after a command, and is enabled whoever disabled it. Every call raises
    Refused when the controller declines it, Unavailable when the connection is lost.
    """

    def __init__(
        self,
        methods: IjtMethods,
        uri: str,
        session: ClientSession,
        enabled: Node | None,
        state: ControllerState,
        *,
        is_on: bool,
    ) -> None:
        self._methods = methods
        self._uri = uri
        self._session = session
        self._enabled = enabled
        self.is_on = is_on and "EnableAsset" in methods
        self._state = state

    async def enable(self) -> None:
        """Enable the tool for a command; raises Refused while it is disabled by another system."""
        if self._state.is_disabled_elsewhere and await self.is_disabled():
            raise Refused("device", _DISABLED)
        self._state.is_disabled_elsewhere = False
        if "EnableAsset" in self._methods:
            await self._methods.call("EnableAsset", self._uri, True)  # noqa: FBT003 - the argument Enable

    async def disable(self) -> None:
        """Disable the tool."""
        if "EnableAsset" in self._methods:
            await self._methods.call("EnableAsset", self._uri, False)  # noqa: FBT003 - the argument Enable

    async def is_disabled(self) -> bool:
        """Return whether the controller reports the tool as disabled; False when it cannot report that."""
        return self._enabled is not None and await self._session.read(self._enabled) is False

    def note_foreign(self) -> Refused:
        """Remember that another system disabled the tool during a command; return the error of the command."""
        self._state.is_disabled_elsewhere = True
        return Refused("device", _DISABLED)


async def find_enabled(session: ClientSession, system: Node, uri: str) -> Node | None:
    """Return the variable Parameters/Enabled of a tool, of the only tool without `uri`; None where there is none."""
    node: dict[str, Node] = await session.children(system)
    for name in ("AssetManagement", "Assets", "Tools"):
        if name not in node:
            return None
        node = await session.children(node[name])
    found = []
    for tool in node.values():
        parts = await session.children(tool)
        parameters = await session.children(parts["Parameters"]) if "Parameters" in parts else {}
        identification = await session.children(parts["Identification"]) if "Identification" in parts else {}
        known = identification.get("ProductInstanceUri")
        if "Enabled" in parameters and (not uri or (known and await session.read(known) == uri)):
            found.append(parameters["Enabled"])
    return found[0] if len(found) == 1 else None
