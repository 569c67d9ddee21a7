"""`[flows]` switches flows on."""

from edge.config import Settings
from edge.features.flows.settings import FlowsSettings


def test_flows_are_off_unless_the_settings_switch_them_on() -> None:
    assert not Settings().is_on("flows")
    assert not Settings(sections={"flows": FlowsSettings(kept_cycles=7)}).is_on("flows")
    assert Settings(sections={"flows": FlowsSettings(run="on")}).is_on("flows")
