"""The lock of a joining tool: it is enabled for a command only, and stays disabled if another system disabled it."""

import asyncio
from collections.abc import Collection

import structlog
from msgspec import Struct

from edge.features.joining.methods import IjtMethods
from edge.features.joining.state import ControllerState
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.links.opcua import ClientSession, Node
from edge.sfc.signal import Phase
from edge.station.equipment import StationPort

_log = structlog.get_logger(__name__)

SETTLED_SECONDS = 2.0

_DISABLED = Text.of("another system has disabled the tool: enable it there")


class SharedTool(Struct, frozen=True):
    """What the gateways on a store know together of the tool at a place: who disabled it, and whether it is needed."""

    station: StationPort
    place: str
    scopes: Collection[str]
    type_ids: Collection[str]

    async def is_disabled(self) -> bool:
        """Return whether another system has disabled it, as one of the gateways has found."""
        return await self.station.is_disabled_elsewhere(self.place)

    async def keep(self, *, disabled: bool) -> None:
        """Keep whether another system has disabled it."""
        await self.station.keep_disabled(self.place, disabled=disabled)

    async def is_needed(self) -> bool:
        """Return whether a command waits for its answer: one of the gateways may have enabled the tool for it."""
        open_commands = await self.station.outstanding(self.scopes, self.type_ids)
        return any(command.phase is Phase.START for command in open_commands)


class ToolLock:
    """Enables and disables one tool, identified by its ProductInstanceUri; an empty `uri` means the only tool.

    Without `is_on`, the tool stays enabled after a command, and is enabled even if another system disabled it. A tool
    that is enabled for `settled_s` seconds without a command was enabled by another system. Every call raises
    Refused when the controller declines it, Unavailable when the connection is lost.
    """

    def __init__(
        self,
        methods: IjtMethods,
        uri: str,
        session: ClientSession,
        enabled: Node | None,
        state: ControllerState,
        shared: SharedTool,
        *,
        is_on: bool,
        settled_s: float = SETTLED_SECONDS,
    ) -> None:
        self._methods = methods
        self._uri = uri
        self._session = session
        self._enabled = enabled
        self.is_on = is_on and "EnableAsset" in methods
        self._state = state
        self._shared = shared
        self._settled_s = settled_s
        # Until it is disabled for the first time, the tool may be enabled for a command of an earlier connection.
        self._is_ours = True
        self._enabled_elsewhere_at: float | None = None
        self._was_enabled = False

    @property
    def problem(self) -> str | Text:
        """The reason why no command can be carried out; empty when another system has not disabled the tool."""
        return _DISABLED if self.is_on and self._state.is_disabled_elsewhere else ""

    async def resume(self) -> None:
        """Read what was kept; forget it when another system has enabled the tool meanwhile."""
        if self.is_on:
            is_kept = await self._shared.is_disabled()
            is_disabled = (is_kept or self._state.is_disabled_elsewhere) and await self.is_disabled()
            await self._remember(disabled=is_disabled, was=is_kept)

    async def enable(self) -> None:
        """Enable the tool for a command; raises Refused while it is disabled by another system."""
        if self.is_on:
            was = await self._shared.is_disabled() or self._state.is_disabled_elsewhere
            await self._remember(disabled=was and await self.is_disabled(), was=was)
            if self.problem:
                raise Refused("device", _DISABLED)
        self._enabled_elsewhere_at = None
        self._is_ours = self._was_enabled = True
        if "EnableAsset" in self._methods:
            await self._methods.call("EnableAsset", self._uri, True)  # noqa: FBT003 - the argument Enable

    async def disable(self) -> None:
        """Disable the tool."""
        self._enabled_elsewhere_at = None
        if "EnableAsset" in self._methods:
            try:
                await self._methods.call_step("EnableAsset", self._uri, False)  # noqa: FBT003 - the argument Enable
            except Refused:
                # What counts is the tool: a slow controller may have disabled it without an answer in time.
                if not await self.is_disabled():
                    raise
        self._is_ours = False

    async def is_disabled(self) -> bool:
        """Return whether the controller reports the tool as disabled; False when it cannot report that."""
        return self._enabled is not None and await self._session.read(self._enabled) is False

    async def is_withdrawn(self) -> bool:
        """Return whether the tool is disabled and was enabled before on this connection, unlike after a power cut."""
        is_disabled = await self.is_disabled()
        self._was_enabled |= not is_disabled
        return is_disabled and self._was_enabled

    async def handle_change(self, *, enabled: bool) -> None:
        """Detect that another system enables or disables the tool while no command needs it."""
        if self._is_ours:
            return
        now, since = asyncio.get_running_loop().time(), self._enabled_elsewhere_at
        if not enabled:
            self._enabled_elsewhere_at = None
            if since is not None and now - since >= self._settled_s:
                await self.note_foreign()
            return
        # A report of our own call may come after the call that followed it; another gateway may have enabled the tool.
        if not await self.is_disabled() and (self.problem or not await self._shared.is_needed()):
            _log.info("tool enabled without a command")
            self._enabled_elsewhere_at = now
            await self._remember(disabled=False, was=self._state.is_disabled_elsewhere)

    async def note_foreign(self) -> Refused:
        """Remember that another system disabled the tool; return the error of a command that it ended."""
        _log.warning("tool disabled by another system")
        await self._remember(disabled=True, was=False)
        return Refused("device", _DISABLED)

    async def _remember(self, *, disabled: bool, was: bool) -> None:
        self._state.is_disabled_elsewhere = disabled
        self._is_ours = self._is_ours and not disabled
        if disabled != was:
            await self._shared.keep(disabled=disabled)


async def find_enabled(session: ClientSession, system: Node, uri: str) -> Node | None:
    """Return the variable Parameters/Enabled of a tool, of the only tool without `uri`; None where there is none."""
    node: dict[str, Node] = await session.children(system)
    for name in ("AssetManagement", "Assets", "Tools"):
        if name not in node:
            return None
        node = await session.children(node[name])
    nodes = []
    for tool in node.values():
        parts = await session.children(tool)
        parameters = await session.children(parts["Parameters"]) if "Parameters" in parts else {}
        identification = await session.children(parts["Identification"]) if "Identification" in parts else {}
        known = identification.get("ProductInstanceUri")
        if "Enabled" in parameters and (not uri or (known and await session.read(known) == uri)):
            nodes.append(parameters["Enabled"])
    return nodes[0] if len(nodes) == 1 else None
