"""The event that stored a job and its W3C Trace Context are passed to all following messages."""

from tests.outside.conftest import Plant

_PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_cause_and_trace_pass_through_answers_events_and_commands(plant: Plant) -> None:
    plant.wrench.holds = True
    answer = plant.mes.start_job("J1", id="order-1", traceparent=_PARENT)
    assert (answer.attributes["causationid"], answer.attributes["traceparent"]) == ("order-1", _PARENT)
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command", 60)
    assert plant.mes.call("Abort", {"JobOrderID": "J1"}).status == 1
    plant.mes.wait_for_state("J1", "Aborted", 60)
    plant.wrench.client.wait(lambda: len(plant.wrench.commands) > 1, "the tool has the stop", 60)
    assert [command.attributes["phase"] for command in plant.wrench.commands] == ["start", "stop"]
    events = [received for received in plant.mes.client.received if received.topic.endswith("/events")]
    assert len(events) == 2
    for message in (*plant.wrench.commands, *events):
        assert message.attributes["causationid"] == "order-1", message
        assert message.attributes["traceparent"] == _PARENT, message
