"""The flows that the flows scene of the demo runs."""

from typing import Any, Final

PRESS_TAG: Final = "press.pressure"
PRESS_TOPIC: Final = "plant/press/mean"
SHIFT_TOPIC: Final = "plant/shift/cmk"
LEAST_CMK: Final = 1.33
_SHIFT_SECONDS: Final = 8 * 3600


def press_report() -> dict[str, Any]:
    """Return a flow that publishes the mean of a tag each second."""
    nodes = [
        _node("pressure", "tag.window", tag=PRESS_TAG, seconds=60),
        _node("mean", "aggregate", of="mean"),
        _node("publish", "mqtt.publish", topic=PRESS_TOPIC),
    ]
    edges = [["pressure", "mean"], ["mean", "publish"]]
    return {"id": "press-report", "interval_seconds": 1, "nodes": nodes, "edges": edges}


def shift_report(limits: dict[str, tuple[float, float]]) -> dict[str, Any]:
    """Return a flow that publishes Cmk of the torque of each action, with its limits, and raises an alarm below 1.33.

    It runs once; in a plant it has `shifts` in place of the interval.
    """
    nodes = [_node("report", "merge"), _node("publish", "mqtt.publish", topic=SHIFT_TOPIC)]
    edges = [["report", "publish"]]
    for action, (lsl, usl) in limits.items():
        torques, low, alarm = f"{action} torques", f"{action} is low", f"{action} alarm"
        message = f"Cmk of {action} is below {LEAST_CMK}"
        nodes += [
            _node(torques, "job.results", member="torque", action=action, seconds=_SHIFT_SECONDS),
            _node(action, "capability", lsl=lsl, usl=usl),
            _node(low, "switch", when=f"input.cmk < {LEAST_CMK}"),
            _node(alarm, "alarm.raise", alarm=f"cmk.{action}", severity=600, message=message),
        ]
        edges += [[torques, action], [action, "report"], [action, low], [low, alarm]]
    return {"id": "shift-report", "interval_seconds": 0, "nodes": nodes, "edges": edges}


def two_components(soak_seconds: float) -> dict[str, Any]:
    """Return a flow whose components a person stops and terminates, and one node of which fails."""
    nodes = [
        _node("heat", "constant", value=180),
        _node("soak", "delay", seconds=soak_seconds),
        _node("unload", "mqtt.publish", topic="plant/oven/unload"),
        _node("order", "constant", value="4711"),
        _node("ask ERP", "fail", message="status 503"),
        _node("book", "mqtt.publish", topic="plant/erp/book"),
        _node("wait for release", "delay", seconds=3600),
        _node("ship", "mqtt.publish", topic="plant/erp/ship"),
    ]
    edges = [
        *(["heat", "soak"], ["soak", "unload"]),
        *(["order", "ask ERP"], ["ask ERP", "book"], ["order", "wait for release"], ["wait for release", "ship"]),
    ]
    return {"id": "two-components", "interval_seconds": 0, "nodes": nodes, "edges": edges}


def _node(name: str, kind: str, **config: Any) -> dict[str, Any]:
    return {"id": name, "kind": kind, "config": config}
