"""Draw the rooms of the product as the contracts of import-linter order them."""

import tomllib
from pathlib import Path
from typing import Any

_PROJECT = Path(__file__).parents[2] / "pyproject.toml"
_VENDORS = {"redis": "Redis", "paho": "MQTT", "gpiod": "GPIO", "starlette": "HTTP", "asyncua": "OPC UA"}
_LEFT, _TOP, _WIDTH, _GAP, _BOX, _ROW = 24, 52, 800, 10, 40, 50
_COLOURS = ("#dbeafe", "#e0e7ff", "#fef3c7", "#dcfce7", "#f3f4f6")
_BANDS = {"features": 2, "cli": 0, "app": 0, "northbound": 1, "station": 1, "access": 1, "store": 3, "opcua": 3}
"""First room of a level -> colour; a level without an entry is pure or a foundation."""


def rooms_svg() -> str:
    """Return the rooms as SVG: imports go down only, vendor libraries stand in the rooms that may import them."""
    contracts = tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    levels = [[room.strip() for room in line.split("|")] for line in contracts[0]["layers"]]
    vendors = _vendors(contracts[1:], {room for level in levels for room in level})
    width, height = 2 * _LEFT + _WIDTH, _TOP + len(levels) * _ROW + 8
    boxes = "\n".join(
        _box(room, vendors.get(room, ()), (column, row), len(level), _COLOURS[_BANDS.get(level[0], 4)])
        for row, level in enumerate(levels)
        for column, room in enumerate(level)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">\n<title>Rooms of microdcs-edge</title>\n<style>\n'
        "text { font: 14px system-ui, sans-serif; fill: #111827; text-anchor: middle }\n"
        ".vendor { font-size: 11px; fill: #b45309 }\ntext.head { text-anchor: start; fill: #4b5563 }\n"
        f'</style>\n<rect width="{width}" height="{height}" fill="#fff"/>\n'
        f'<text class="head" x="{_LEFT}" y="30">A room imports rooms below it only. '
        f'<tspan fill="#b45309">Orange: the protocol that only this room speaks.</tspan></text>\n{boxes}\n</svg>\n'
    )


def _vendors(contracts: list[dict[str, Any]], rooms: set[str]) -> dict[str, tuple[str, ...]]:
    """Return the protocols of each room, by the exceptions of the contracts."""
    spoken: dict[str, tuple[str, ...]] = {}
    for package, protocol in _VENDORS.items():
        allowed = [value.split(" -> ") for contract in contracts for value in contract.get("ignore_imports", ())]
        for room in sorted({importer.split(".")[1] for importer, imported in allowed if imported == package} & rooms):
            spoken[room] = (*spoken.get(room, ()), protocol)
    return spoken


def _box(room: str, vendors: tuple[str, ...], place: tuple[int, int], rooms_of_level: int, colour: str) -> str:
    column, row = place
    width = (_WIDTH - (rooms_of_level - 1) * _GAP) / rooms_of_level
    x, y = _LEFT + column * (width + _GAP), _TOP + row * _ROW
    vendor = f' <tspan class="vendor">{", ".join(vendors)}</tspan>' if vendors else ""
    return (
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_BOX}" rx="6" fill="{colour}" stroke="#9ca3af"/>'
        f'<text x="{x + width / 2:.1f}" y="{y + 25}">{room}{vendor}</text>'
    )
