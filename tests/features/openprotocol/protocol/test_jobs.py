"""The description of a job: a golden frame, and malformed lists of steps."""

import pytest

from edge.features.openprotocol.protocol.frame import FrameReader, MidFrame, encode_frame
from edge.features.openprotocol.protocol.jobs import JobStep, encode_job, parse_job
from edge.features.openprotocol.protocol.mids import Mid
from edge.foundation.errors import Refused

FRAME = (
    b"01150033001         010702REAR AXLE                031040060"
    b"050060006007008009010011012021315:003:0:04;15:002:0:02;\0"
)


def test_golden_frame_of_a_job_is_read() -> None:
    (frame,) = FrameReader().feed(FRAME)
    job = parse_job(frame)
    assert (job["id"], job["name"], job["forced_order"], job["first_seconds"]) == (7, "REAR AXLE", 1, 60)
    assert job["steps"] == (JobStep(15, 3, 4), JobStep(15, 2, 2))


@pytest.mark.parametrize("revision", [1, 2])
def test_job_is_unchanged_after_encoding_and_decoding(revision: int) -> None:
    steps = (JobStep(1, 3, 4), JobStep(2, 12, 99))
    (frame,) = FrameReader().feed(encode_frame(encode_job(revision, steps, id=5, name="J")))
    assert parse_job(frame) | {"id": 5, "name": "J", "steps": steps, "parameter_sets": 2} == parse_job(frame)


@pytest.mark.parametrize("listed", [b"14", b"13x:y:z:1;", b"1315:003:0;", b"13;;;15:003:0:", b"13" + b"a" * 4000])
def test_malformed_list_of_steps_is_refused(listed: bytes) -> None:
    frame = encode_job(1, (), id=5)
    with pytest.raises(Refused):
        parse_job(MidFrame(Mid.JOB_REPLY, frame.data.removesuffix(b"13") + listed))
