"""The public form of an audit record names gateway and client as other objects do."""

import msgspec

from edge.model.audit import AuditRecord, SealedRecord, public_record


def test_record_has_its_gateway_and_client() -> None:
    record = AuditRecord(at=1_000, kind="web.call", instance="gw-1", user="anna", action="Start", application="Firefox")
    shown = msgspec.to_builtins(public_record(SealedRecord(7, "d", "{}"), record))
    assert (shown["number"], shown["at"], shown["gateway"], shown["client"]) == (
        7,
        "1970-01-01T00:00:01.000Z",
        "gw-1",
        "Firefox",
    )


def test_record_that_cannot_be_read_is_its_text() -> None:
    shown = msgspec.to_builtins(public_record(SealedRecord(7, "d", "{"), None))
    assert shown == {"number": 7, "digest": "d", "unreadable": "{"}
