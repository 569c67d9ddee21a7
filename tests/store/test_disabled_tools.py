"""Tests of the tools that another system has disabled."""

from edge.store import disabled_tools
from edge.store.client import Store


async def test_a_tool_stays_disabled_until_it_is_removed(store: Store) -> None:
    await disabled_tools.keep(store, "opc.tcp://tool", 5)
    assert await disabled_tools.is_disabled(store, "opc.tcp://tool")
    assert not await disabled_tools.is_disabled(store, "opc.tcp://other")
    await disabled_tools.keep(store, "opc.tcp://tool", None)
    assert not await disabled_tools.is_disabled(store, "opc.tcp://tool")
