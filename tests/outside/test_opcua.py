"""OPC UA clients of another vendor see every job."""

import pytest

from tests.outside.conftest import Plant
from tests.outside.opcua_client import opcua_client, read_line
from tests.outside.plant import order

pytestmark = pytest.mark.slow

LIMITS = """
max_sessions = 7
max_connections = 7
max_subscriptions = 5
max_subscriptions_per_session = 3
max_monitored_items_per_session = 40
max_queued_values = 6
max_nodes_per_read = 11
max_nodes_per_browse = 12
min_publishing_interval = 0.2
"""


def test_opcua_limits_of_the_settings_are_reported_and_enforced(plant: Plant) -> None:
    settings = plant.gateway.settings
    settings.write_text(settings.read_text().replace("[opcua]", f"[opcua]{LIMITS}"))
    plant.gateway.stop()
    plant.gateway.start()
    with opcua_client(plant.opcua_port, "limits") as client:
        found = read_line(client)
    assert found == {
        "named": [7, 5, 3, 40, 11, 12],
        "subscriptions": 3,
        "refusal": "BadTooManySubscriptions",
        "interval": 200,
        "queue": 6,
        "reads": ["Good", "BadTooManyOperations"],
    }


def test_wrong_arguments_are_answered_with_their_status(plant: Plant) -> None:
    with opcua_client(plant.opcua_port, "faults") as client:
        found = read_line(client)
    assert found == {
        "view": "BadViewIdUnknown",
        "encodings": ["Good", "BadDataEncodingUnsupported", "BadDataEncodingInvalid"],
        "times": [[True, False], [False, True], [True, True], [False, False]],
        "timestamps": "BadTimestampsToReturnInvalid",
        "age": "BadMaxAgeInvalid",
        "republish": "BadMessageNotAvailable",
        "others": "BadSubscriptionIdInvalid",
        "nothing": "BadNothingToDo",
    }


def test_diagnostics_count_the_activity_of_a_subscription(plant: Plant) -> None:
    with opcua_client(plant.opcua_port, "counters") as client:
        found = read_line(client)
    counted = (
        "modifyCount",
        "enableCount",
        "disableCount",
        "republishRequestCount",
        "republishMessageCount",
        "priority",
    )
    assert {name: found[name] for name in counted} == {
        "modifyCount": 1,
        "enableCount": 1,
        "disableCount": 1,
        "republishRequestCount": 1,
        "republishMessageCount": 0,
        "priority": 9,
    }
    assert found["publishRequestCount"] >= 2
    assert found["dataChangeNotificationsCount"] >= 2
    assert found["notificationsCount"] == found["dataChangeNotificationsCount"] + found["eventNotificationsCount"]


def test_a_stored_job_is_in_the_list_of_an_opc_ua_client(plant: Plant) -> None:
    assert plant.mes.call("Store", order("J1")).status == 1
    with opcua_client(plant.opcua_port, "list") as reader:
        assert read_line(reader) == {"jobs": ["J1"]}
