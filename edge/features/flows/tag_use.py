"""Finds the tags that a flow reads or writes."""

from edge.features.flows.nodes.tag_latest import TagLatestConfig
from edge.features.flows.nodes.tag_window import TagWindowConfig
from edge.features.flows.nodes.tag_write import TagWriteConfig
from edge.features.flows.plan import Plan


def used_tags(plan: Plan) -> frozenset[str]:
    """Return the tags of the nodes of a plan."""
    configs = (node.config for node in plan.nodes.values())
    return frozenset(
        each.tag for each in configs if isinstance(each, TagLatestConfig | TagWindowConfig | TagWriteConfig)
    )
