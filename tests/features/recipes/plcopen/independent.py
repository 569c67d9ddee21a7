"""A reader of charts of its own: written from the schema of TC6 XML 2.01, it shares no code with the product."""

from typing import NamedTuple
from xml.etree import ElementTree as ET

TC6 = "{http://www.plcopen.org/xml/tc6_0201}"


class Way(NamedTuple):
    """A transition: the steps before and after it, its condition, its priority (-1 without one)."""

    before: frozenset[str]
    after: frozenset[str]
    condition: str
    priority: int


class PlcChart(NamedTuple):
    """The steps, initial ones, transitions, and actions of each step as the file has them."""

    steps: frozenset[str]
    initial: frozenset[str]
    ways: tuple[Way, ...]
    actions: dict[str, list[tuple[str, str, str]]]
    comments: dict[str, str]
    """The documentation of each variable."""


def read_plc_chart(data: bytes) -> PlcChart:
    """Read the only chart of a file."""
    root = ET.fromstring(data)  # noqa: S314
    (body,) = root.iter(f"{TC6}SFC")
    elements = {node.get("localId"): node for node in body}
    assert len(elements) == len(body)
    following: dict[str | None, list[ET.Element]] = {}
    for node in body:
        for connection in node.iterfind(f"{TC6}connectionPointIn/{TC6}connection"):
            following.setdefault(connection.get("refLocalId"), []).append(node)
    by_name = {node.get("name"): node for node in body if node.tag in {f"{TC6}step", f"{TC6}simultaneousDivergence"}}

    def kind(node: ET.Element) -> str:
        return node.tag.removeprefix(TC6)

    def before(node: ET.Element) -> frozenset[str]:
        if kind(node) == "step":
            return frozenset({str(node.get("name"))})
        connections = node.iterfind(f"{TC6}connectionPointIn/{TC6}connection")
        return frozenset().union(*(before(elements[connection.get("refLocalId")]) for connection in connections))

    def after(node: ET.Element) -> frozenset[str]:
        match kind(node):
            case "step":
                return frozenset({str(node.get("name"))})
            case "jumpStep":
                return after(by_name[node.get("targetName")])
            case "simultaneousDivergence":
                return frozenset().union(*map(after, following[node.get("localId")]))
            case _:
                (only,) = following[node.get("localId")]
                return after(only)

    ways = tuple(
        Way(
            before(node),
            after(node),
            "".join(node.find(f"{TC6}condition").itertext()),  # type: ignore[union-attr]
            int(node.get("priority", "-1")),
        )
        for node in body
        if kind(node) == "transition"
    )
    actions: dict[str, list[tuple[str, str, str]]] = {}
    for block in body.iterfind(f"{TC6}actionBlock"):
        (step,) = before(block)
        for action in block.iterfind(f"{TC6}action"):
            name = action.find(f"{TC6}reference").get("name")  # type: ignore[union-attr]
            entry = (str(name), str(action.get("qualifier")), str(action.get("duration", "")))
            actions.setdefault(step, []).append(entry)
    steps = [node for node in body if kind(node) == "step"]
    return PlcChart(
        frozenset(str(node.get("name")) for node in steps),
        frozenset(str(node.get("name")) for node in steps if node.get("initialStep") == "true"),
        ways,
        actions,
        {
            str(node.get("name")): "".join(node.find(f"{TC6}documentation").itertext())  # type: ignore[union-attr]
            for node in root.iter(f"{TC6}variable")
            if node.find(f"{TC6}documentation") is not None
        },
    )
