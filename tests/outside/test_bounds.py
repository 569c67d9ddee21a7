"""Data kept for the MES is bounded, reported before the limit, and not dropped before it is delivered."""

import json
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from tests.outside.conftest import Plant
from tests.outside.plant import METHOD, Mes
from tests.outside.servers import EDGE, PREFIX, wait_for

pytestmark = pytest.mark.slow

_EVENT = {"specversion": "1.0", "source": "/wrench", "type": "com.example.noise.v1", "subject": "station-1"}
_MARKS = "for i = 1, {} do redis.call('set', 'microdcs-edge:cededupe:' .. i, '1', 'ex', 600) end return 1"


def test_new_orders_are_refused_while_marks_are_at_their_limit(plant: Plant) -> None:
    """A call that was answered before is answered again meanwhile, and jobs can be ended; later orders run again."""
    _restart_with(plant, "[retention]\nmarks = 1000\n")
    assert plant.mes.start_job("J1", id="call-1").status == 1
    plant.mes.wait_for_state("J1", "Ended")
    plant.store.cli("eval", _MARKS.format(600), "0")
    plant.gateway.wait_for_status(lambda line: "of at most 1000 marks" in line, "the status names the marks")
    assert plant.mes.start_job("J2").status == 1
    plant.store.cli("eval", _MARKS.format(1000), "0")
    plant.gateway.wait_for_status(lambda line: "1000 marks" in line and _count(line) >= 1000, "marks are full")
    again = plant.mes.start_job("J1", id="call-1")
    assert again.status == 1
    assert plant.mes.start_job("J3").status == 16
    assert plant.mes.call("Clear", {"JobOrderID": "J2"}).status == 1
    levels = {
        finding["subject"]: finding["level"]
        for finding in json.loads(plant.gateway.cli("doctor", "--json"))["findings"]
    }
    assert levels["marks of messages"] == "failing"
    plant.store.cli("eval", "for i = 1, 1000 do redis.call('del', 'microdcs-edge:cededupe:' .. i) end return 1", "0")
    plant.gateway.wait_for_status(lambda line: "marks" not in line, "there is room again")
    assert plant.mes.start_job("J3").status == 1
    plant.mes.wait_for_state("J3", "Ended")
    assert len(set(plant.wrench.starts())) == 3


def test_events_of_one_device_do_not_stop_orders(plant: Plant) -> None:
    """No job waits for the events; a repetition within the hour still has no effect on a later job."""
    _restart_with(plant, "[retention]\nmarks = 1000\n")
    topic = f"{PREFIX}/equipment/wrench/events"
    for number in range(1500):
        event = _EVENT | {"id": str(number)}
        plant.wrench.client.publish(topic, "", event, confirm=10.0 if number % 15 == 14 else None)
    assert plant.mes.start_job("J1").status == 1
    plant.mes.wait_for_state("J1", "Ended")
    plant.gateway.wait_for_status(lambda line: "marks" not in line, "the events need no marks")
    assert int(plant.store.cli("eval", "return #redis.call('keys', 'microdcs-edge:cededupe:*')", "0")) < 100


def test_sender_of_too_many_calls_is_refused_alone_until_dropped(plant: Plant) -> None:
    """The status names the sender at half of its share; the command is in the audit trail."""
    _restart_with(plant, "[retention]\nmarks = 1000\n")
    cancel = METHOD.format("Cancel")
    for number in range(520):
        plant.mes.send(cancel, {"JobOrderID": "none"}, source="/flood", id=f"flood-{number}")
    plant.gateway.wait_for_status(lambda line: "of at most 500 marks kept of calls:/flood" in line, "it is named")
    plant.gateway.wait_for_status(lambda line: _count_of(line, "calls:/flood") >= 500, "the share is used")
    assert plant.mes.start_job("J1", source="/flood").status == 16
    assert plant.mes.start_job("J1").status == 1
    plant.mes.wait_for_state("J1", "Ended")
    assert "calls:/flood" in plant.gateway.cli("marks", "list")
    assert "520 marks dropped" in plant.gateway.cli("marks", "drop", "calls:/flood")
    plant.gateway.wait_for_status(lambda line: "calls:/flood" not in line, "there is room again")
    assert plant.mes.start_job("J2", source="/flood").status == 1
    assert "marks drop" in plant.gateway.cli("audit")


def test_mark_retention_below_the_redelivery_time_is_reported(plant: Plant) -> None:
    """Session expiry of a day plus the autosave interval of the broker."""
    settings = plant.gateway.settings
    settings.write_text(settings.read_text().replace("[mqtt]", "[mqtt]\nbroker_autosave = 3600", 1))
    settings.write_text(f"{settings.read_text()}\n[retention]\ndedupe = 89999\n")
    checked = _check(settings)
    assert checked.returncode == 2
    assert "expected at least 90000" in checked.stdout + checked.stderr
    settings.write_text(settings.read_text().replace("89999", "90000"))
    assert _check(settings).returncode == 0


def test_results_without_a_reader_are_kept_and_refuse_new_orders(plant: Plant, tmp_path: Path) -> None:
    """The broker reports no subscriber; the results go once they are in a file."""
    mes = _deaf_mes(plant)
    _restart_with(plant, "[retention]\nended_jobs = 1\nundelivered_jobs = 2\n")
    try:
        for number in (1, 2):
            assert mes.start_job(f"J{number}").status == 1
            _wait_for_undelivered(plant, number)
        plant.gateway.wait_for_status(lambda line: "2 of at most 2 undelivered results" in line, "the status says so")
        refused = mes.start_job("J3")
        assert refused.status == 16
        assert "2 results wait for the MES" in refused.data["Reason"]
        file = tmp_path / "results.jsonl"
        plant.gateway.cli("jobs", "export", str(file), "--undelivered", "--confirm")
        records = [json.loads(line) for line in file.read_text().splitlines()]
        assert [record["order"]["JobOrder"]["JobOrderID"] for record in records] == ["J1", "J2"]
        assert all("85.2" in str(record["response"]) for record in records)
        wait_for(lambda: '"J1"' not in plant.gateway.cli("jobs", "list", "--json"), "the exported job is removed")
        assert mes.start_job("J4").status == 1
        assert plant.store.cli("exists", "microdcs-edge:joborder:J3") == "0"
    finally:
        mes.client.close()


def test_delivered_result_is_removed_after_its_retention(plant: Plant) -> None:
    """The retained topic goes too; a reader that comes late has read it."""
    _restart_with(plant, '[retention]\nended_jobs = 1\nconfirmation = "delivery"\n')
    began = time.monotonic()
    assert plant.mes.start_job("J1").status == 1
    plant.mes.client.wait(lambda: plant.mes.result("J1"), "the MES has the result")
    wait_for(lambda: plant.store.cli("exists", "microdcs-edge:joborder:J1") == "0", "the job is removed")
    assert time.monotonic() - began >= 1
    plant.mes.client.wait(lambda: plant.mes.result("J1") is None, "the retained result is removed")


def test_results_outlast_a_weekend_without_the_mes(plant: Plant) -> None:
    """The broker keeps the session of the MES and confirms each result, but its queue drops most of them."""
    plant.broker.further = "max_queued_messages 5\n"
    plant.broker.stop()
    plant.broker.start()
    _restart_with(plant, "[retention]\nended_jobs = 1\n")
    names = [f"J{number}" for number in range(12)]
    operator = Mes(plant.broker.port, "operator")
    operator.client.connect()
    operator.client.subscribe(operator.answers)
    plant.mes.client.close()
    try:
        for name in names:
            assert operator.start_job(name).status == 1
        key = "microdcs-edge:joborder:list:station-1:unconfirmed"
        wait_for(lambda: plant.store.cli("zcard", key) == "12", "all results wait for the MES beyond their time")
        asked = operator.call("RequestJobResponseByJobOrderID", {"JobOrderID": "J0"})
        assert "85.2" in str(asked.data["JobResponse"])
        answer = operator.ask(
            "com.github.aschamberger.microdcs.acknowledge.v1", {"JobOrderIDs": [*names[1:10], "none"]}
        )
        assert answer.data == {"ReturnStatus": 1, "Acknowledged": names[1:10]}
        assert operator.call("Clear", {"JobOrderID": "J10"}).status == 1
        # J0 was asked for, and stays for some minutes in case that the answer was lost.
        wait_for(lambda: _kept_jobs(plant) == ["J0", "J11"], "the confirmed results are removed")
    finally:
        operator.client.close()


def test_line_continues_when_the_mes_never_confirms(plant: Plant) -> None:
    """Beyond the limit the oldest delivered results go, each counted and named in the log; no order is refused."""
    _restart_with(plant, "[retention]\nended_jobs = 1\nundelivered_jobs = 3\n")
    for number in range(8):
        assert plant.mes.start_job(f"J{number}").status == 1
        plant.mes.client.wait(partial(plant.mes.result, f"J{number}"), "the MES has the result")
    wait_for(lambda: _kept_jobs(plant) == ["J5", "J6", "J7"], "the oldest results are removed")
    plant.gateway.wait_for_status(
        lambda line: "3 of at most 3 results without a confirmation of the MES" in line, "the status says so"
    )
    assert plant.store.cli("get", "microdcs-edge:counter:results_unconfirmed_removed") == "5"
    deleted = [line for line in plant.gateway.log.read_text().splitlines() if "result deleted unconfirmed" in line]
    assert [name for name in map("J{}".format, range(8)) if any(name in line for line in deleted)] == [
        "J0",
        "J1",
        "J2",
        "J3",
        "J4",
    ]


def test_ended_jobs_beyond_their_number_go_once_the_mes_has_their_results(plant: Plant) -> None:
    """The oldest go first, with their retained topics, long before their time; their calls are not repeated."""
    _restart_with(plant, "[retention]\nkept_jobs = 2\n")
    for number in range(1, 5):
        assert plant.mes.start_job(f"J{number}", id=f"call-{number}").status == 1
        plant.mes.client.wait(partial(plant.mes.result, f"J{number}"), "the MES has the result")
    wait_for(lambda: _kept_jobs(plant) == ["J3", "J4"], "the two oldest are removed")
    plant.mes.client.wait(lambda: plant.mes.result("J1") is None, "the retained result is removed")
    assert plant.mes.start_job("J1", id="call-1").status == 1
    assert _kept_jobs(plant) == ["J3", "J4"]
    assert len(set(plant.wrench.starts())) == 4


def test_results_without_a_reader_outlast_the_number_of_kept_jobs(plant: Plant, tmp_path: Path) -> None:
    mes = _deaf_mes(plant)
    _restart_with(plant, "[retention]\nkept_jobs = 1\n")
    try:
        for number in range(1, 4):
            assert mes.start_job(f"J{number}").status == 1
            _wait_for_ended(plant, number)
        file = tmp_path / "results.jsonl"
        plant.gateway.cli("jobs", "export", str(file), "--confirm")
        exported = [json.loads(line)["order"]["JobOrder"]["JobOrderID"] for line in file.read_text().splitlines()]
        assert sorted(exported) == ["J1", "J2", "J3"]
        assert mes.start_job("J4").status == 1
        wait_for(lambda: _kept_jobs(plant) == ["J4"], "those with a known result are removed")
    finally:
        mes.client.close()


def _deaf_mes(plant: Plant) -> Mes:
    """Return a MES that reads answers only."""
    plant.mes.client.close()
    # The session of that MES is lost with the broker: kept, it would count as a subscriber.
    plant.broker.kill()
    plant.broker.start()
    mes = Mes(plant.broker.port, "deaf")
    mes.client.connect()
    mes.client.subscribe(mes.answers)
    return mes


def _kept_jobs(plant: Plant) -> list[str]:
    return sorted(plant.store.cli("zrange", "microdcs-edge:joborder:list:station-1", "0", "-1").split())


def _wait_for_ended(plant: Plant, count: int) -> None:
    key = "microdcs-edge:jobresponse:list:station-1:ENDED"
    wait_for(lambda: plant.store.cli("zcard", key) == str(count), f"{count} jobs have ended")


def _restart_with(plant: Plant, section: str) -> None:
    settings = plant.gateway.settings
    settings.write_text(f"{settings.read_text()}\n{section}")
    plant.gateway.stop()
    plant.gateway.start()


def _wait_for_undelivered(plant: Plant, count: int) -> None:
    key = "microdcs-edge:joborder:list:station-1:undelivered"
    wait_for(lambda: plant.store.cli("zcard", key) == str(count), f"{count} results are undelivered")


def _count(line: str) -> int:
    part = next(text for text in line.split("; ") if "marks of messages" in text)
    return int(part.split()[0])


def _count_of(line: str, sender: str) -> int:
    part = next((text for text in line.split("; ") if text.endswith(f"marks kept of {sender}")), "0")
    return int(part.split()[0])


def _check(settings: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [EDGE, "check", "settings", settings], capture_output=True, text=True, check=False, timeout=60
    )
