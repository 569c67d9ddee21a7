"""The content of an answer: the data, the status and the reason; and what a call changed."""

from edge.model.isa95 import IdCall, JobOrder, LocalizedText, MethodAnswer, OrderCall, RefusalAnswer, ReturnStatus
from edge.model.job_state import Cause
from edge.northbound.reply import CallEffect, caller_of, change_of, method_reply, refusal_reply
from edge.station.job_call import CallAnswer, JobCall


def test_effect_of_a_job_method_names_job_and_comment() -> None:
    texts = (LocalizedText(text="lunch"), LocalizedText(), LocalizedText(text="late"))
    job_call = JobCall("s", Cause.PAUSE, IdCall(job_order_id="J1", comment=texts), "/mes", "1")
    assert change_of(job_call) == CallEffect("Pause", "J1", "lunch / late")
    ordered = JobCall("s", Cause.STORE, OrderCall(job_order=JobOrder(job_order_id="J2")), "/mes", "2")
    assert change_of(ordered) == CallEffect("Store", "J2")


def test_caller_is_named_by_the_transport() -> None:
    assert str(caller_of("app/jobs/station-1/commands")) == "the MES"
    assert str(caller_of("rpc")) == "a program over RPC"


def test_reply_holds_the_reasons_in_payload_and_attribute() -> None:
    effect = CallEffect("Pause", "J1")
    done = method_reply(CallAnswer(ReturnStatus.NO_ERROR), effect)
    assert (done.reason, done.error_kind, done.change) == (None, None, effect)
    status = ReturnStatus.UNKNOWN_JOB_ORDER_ID
    declined = method_reply(CallAnswer(status, ("no such job", "look")), effect)
    assert declined.data == MethodAnswer(return_status=status, reason="no such job; look")
    assert declined.reason == "no such job; look"
    refused = refusal_reply("expired", "too late")
    assert refused.data == RefusalAnswer(error_kind="expired", reason="too late")
    assert (refused.error_kind, refused.reason, refused.change) == ("expired", "too late", None)
