"""Every call is recorded with user, address, method, comment and result, at every log level."""

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
from asyncua import Client, ua

from edge.access.audit_trail import open_trail
from edge.model.audit import AuditRecord
from edge.model.isa95 import JobOrder, ReturnStatus
from edge.model.user import Role
from edge.opcua.access import Caller
from edge.store.audit import newest
from edge.store.client import Store
from edge.uaserver import audit
from edge.uaserver.encoding import extension_object
from edge.uaserver.security import AccessControl
from tests.conftest import WaitUntil
from tests.uaserver.clients import connected, make_application, make_settings, with_users
from tests.uaserver.running import MACHINES, Space, Station, served

COMMENT = ua.Variant([ua.LocalizedText("drill is worn"), ua.LocalizedText("sorry")], ua.VariantType.LocalizedText)
NO_COMMENT = ua.Variant([], ua.VariantType.LocalizedText, is_array=True)
JOB = ua.Variant("job-1", ua.VariantType.String)

Records = list[Mapping[str, Any]]


@pytest.fixture
def records() -> Iterator[Records]:
    with structlog.testing.capture_logs() as captured:
        yield captured  # type: ignore[misc]


def of_kind(records: Records, kind: str) -> Records:
    return [record for record in records if record.get("audit") == kind]


async def test_call_is_recorded_with_user_method_job_comment_and_result(
    tmp_path_factory: pytest.TempPathFactory, records: Records
) -> None:
    settings = with_users(make_settings(tmp_path_factory.mktemp("audit")))
    scada = make_application(tmp_path_factory.mktemp("scada"))
    scada.trusted_by(settings)
    async with (
        served(settings, MACHINES[:1], Station()) as server,
        connected(server.endpoint, scada, user="operator") as client,
    ):
        await ask(client, "Abort", JOB, COMMENT)
        order = extension_object(JobOrder(job_order_id="job-2"))
        await ask(client, "Store", ua.Variant(order, ua.VariantType.ExtensionObject), NO_COMMENT)
    who = {"user": "operator", "role": "operator", "application": scada.uri, "address": "127.0.0.1"}
    (login,) = of_kind(records, "opcua.login")
    assert login.items() >= who.items()
    abort, store = of_kind(records, "opcua.call")
    assert (
        abort.items()
        >= {
            **who,
            "method": "Abort",
            "object": "station-1/MachineryBuildingBlocks/JobManagement/JobOrderControl",
            "job_order_id": "job-1",
            "comment": "drill is worn / sorry",
            "status": "Good",
            "return_status": 1,
        }.items()
    )
    assert (
        store.items()
        >= {
            **who,
            "method": "Store",
            "job_order_id": "job-2",
            "comment": "",
            "status": "BadUserAccessDenied",
            "return_status": None,
        }.items()
    )


async def ask(client: Client, name: str, *arguments: ua.Variant) -> None:
    space = Space(client, await client.get_namespace_array())
    method = await space.member("JobOrderControl", name)
    parent = await method.get_parent()
    await client.uaclient.call([ua.CallMethodRequest(parent.nodeid, method.nodeid, list(arguments))])


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        [ua.Variant()],
        [ua.Variant(7, ua.VariantType.Int32), ua.Variant(ua.LocalizedText("no array"), ua.VariantType.LocalizedText)],
        [ua.Variant(ua.ExtensionObject(ua.NodeId(1), b"nonsense"), ua.VariantType.ExtensionObject)],
    ],
)
def test_call_with_malformed_arguments_is_recorded(arguments: list[ua.Variant], records: Records) -> None:
    request = ua.CallMethodRequest(ua.NodeId("x"), ua.NodeId("y"), arguments)
    audit.record_call(Caller("", Role.OBSERVER), "", request, ua.CallMethodResult())
    (record,) = of_kind(records, "opcua.call")
    assert (record["user"], record["job_order_id"], record["comment"]) == ("anonymous", "", "")


def test_answer_to_an_alarm_is_recorded_with_its_id_and_comment(records: Records) -> None:
    condition = ua.NodeId("0011223344556677/ShelvingState", 10)
    given = [ua.Variant(b"event"), ua.Variant(ua.LocalizedText("on my way"), ua.VariantType.LocalizedText)]
    request = ua.CallMethodRequest(condition, ua.NodeId(9111), given)
    audit.record_call(Caller("op", Role.OPERATOR), "Acknowledge", request, ua.CallMethodResult())
    (record,) = of_kind(records, "opcua.call")
    assert (record["job_order_id"], record["comment"]) == ("0011223344556677", "on my way")


def test_stop_of_a_flow_is_recorded_with_its_reason(records: Records) -> None:
    flow, reason = ua.NodeId("Gateway/Flows/press%2Freport", 1), ua.Variant("night", ua.VariantType.String)
    audit.record_call(
        Caller("op", Role.OPERATOR), "Stop", ua.CallMethodRequest(flow, flow, [reason]), ua.CallMethodResult()
    )
    (record,) = of_kind(records, "opcua.call")
    assert (record["job_order_id"], record["comment"]) == ("Gateway/Flows/press%2Freport", "night")


def test_long_text_of_a_client_is_truncated(records: Records) -> None:
    request = ua.CallMethodRequest(ua.NodeId("x"), ua.NodeId("y"), [ua.Variant("x" * 10_000, ua.VariantType.String)])
    audit.record_call(Caller("", Role.OBSERVER), "Start", request, ua.CallMethodResult())
    assert len(records[0]["job_order_id"]) == 1000


def test_audit_record_is_written_at_every_log_level() -> None:
    logger = logging.getLogger("edge")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        assert logging.getLogger("edge.audit").isEnabledFor(logging.INFO)
    finally:
        logger.setLevel(before)


def test_flood_of_refusals_is_dropped_and_counted(records: Records) -> None:
    now = 0.0
    refusals = audit.RefusalLog(lambda: now)
    for _ in range(1000):
        refusals.record("OPC UA client turned away", "192.0.2.1", reason="it is not trusted")
    assert len(records) == audit.RefusalLog.MOST
    now = 61.0
    refusals.record("OPC UA client turned away", "192.0.2.1", reason="it is not trusted")
    assert records[-2]["dropped"] == 980
    assert records[-1]["address"] == "192.0.2.1"


def test_flood_of_logins_and_refused_calls_of_a_user_is_bounded(records: Records, tmp_path: Path) -> None:
    access = AccessControl(make_settings(tmp_path))
    request, refused = (
        ua.CallMethodRequest(),
        ua.CallMethodResult(StatusCode=ua.StatusCode(ua.StatusCodes.BadUserAccessDenied)),
    )
    for _ in range(500):
        access.record_login(Caller("eve", Role.OBSERVER))
        access.record_call(Caller("eve", Role.OBSERVER), "Abort", request, refused)
        access.record_call(Caller("eve", Role.OBSERVER), "ConditionRefresh", request, ua.CallMethodResult())
    assert len(records) == 60
    access.record_login(Caller("anna", Role.OPERATOR))
    access.record_call(Caller("eve", Role.OPERATOR), "Start", request, ua.CallMethodResult())
    assert [record["user"] for record in records[-2:]] == ["anna", "eve"], "other users and calls with an effect"


async def test_calls_logins_and_refusals_are_written_to_the_audit_trail(
    store: Store, tmp_path_factory: pytest.TempPathFactory, wait_until: WaitUntil
) -> None:
    settings = with_users(make_settings(tmp_path_factory.mktemp("audit")))
    scada = make_application(tmp_path_factory.mktemp("scada"))
    scada.trusted_by(settings)
    async with open_trail(store, "gw-1", 1000, lambda: 7) as trail:
        refusals = audit.RefusalLog(trail=trail)
        async with (
            served(settings, MACHINES[:1], Station(), trail=trail) as server,
            connected(server.endpoint, scada, user="operator") as client,
        ):
            await ask(client, "Abort", JOB, COMMENT)
        refusals.record("OPC UA login refused", "192.0.2.1", user="eve", reason="wrong password")
        await wait_until(lambda: not trail.waiting)
    audit_records = [
        msgspec.json.decode(sealed_record.text, type=AuditRecord) for sealed_record in await newest(store, 9)
    ]
    assert [
        (audit_record.kind, audit_record.user, audit_record.action, audit_record.subject, audit_record.status)
        for audit_record in audit_records
    ] == [
        ("opcua.login", "operator", "login", "", "Good"),
        ("opcua.call", "operator", "Abort", "job-1", "Good"),
        ("opcua.refused", "eve", "OPC UA login refused", "", "wrong password"),
    ]
    assert (audit_records[1].comment, audit_records[1].role, audit_records[1].application) == (
        "drill is worn / sorry",
        "operator",
        scada.uri,
    )


async def test_audit_trail_names_the_return_status_of_a_call(store: Store) -> None:
    returned = ua.Variant(ReturnStatus.AWAITS_SECOND_PERSON.value, ua.VariantType.UInt64)
    result = ua.CallMethodResult(OutputArguments=[returned])
    async with open_trail(store, "gw-1", 1000, lambda: 7) as trail:
        audit.record_call(Caller("op", Role.OPERATOR), "SkipAction", ua.CallMethodRequest(), result, trail)
    (audit_record,) = [
        msgspec.json.decode(sealed_record.text, type=AuditRecord) for sealed_record in await newest(store, 9)
    ]
    assert audit_record.status == "Good, ReturnStatus AWAITS_SECOND_PERSON (17179869184)"
