"""`[fleet]`: signed commands over MQTT need a broker."""

from edge.config import MqttSettings, Settings
from edge.features.fleet import allowed_commands as fleet_commands
from edge.features.fleet.settings import COMMANDS, FleetSettings

NO_BROKER = Settings(mqtt=MqttSettings(url=""))


def test_commands_over_mqtt_need_a_broker() -> None:
    assert list(FleetSettings(listen="mqtt").conflicts(NO_BROKER)) == [
        "listen: mqtt needs a broker; set mqtt.url, or choose store"
    ]
    assert list(FleetSettings(listen="mqtt").conflicts(Settings())) == []
    assert list(FleetSettings().conflicts(NO_BROKER)) == []


def test_misspelt_command_of_the_fleet_is_refused() -> None:
    """It was accepted, and the command that was meant refused later."""
    allow = ("statsu", "audit", "audit list", "audi", "restart now", "")
    problems = list(map(str, FleetSettings(allow=allow).conflicts(NO_BROKER)))
    assert [problem.split("'")[1] for problem in problems] == ["statsu", "audi", "restart now", ""]
    assert "these are status, doctor, " in problems[0]


def test_commands_of_the_settings_are_those_of_the_fleet() -> None:
    assert tuple(fleet_commands.COMMANDS) == COMMANDS
