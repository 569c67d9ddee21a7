"""Chunks of a channel are taken in the order of their numbers only."""

import pytest
from asyncua import ua
from asyncua.common.connection import MessageChunk
from asyncua.crypto.security_policies import CryptographyNone

from edge.opcua.chunk_order import LAST_SEQUENCE_NUMBER, ChunkOrder

CHANNEL = 7
MORE, LAST = ua.ChunkType.Intermediate, ua.ChunkType.Single


def chunk(number: int, request: int = 1, kind: ua.ChunkType = LAST, channel: int = CHANNEL) -> MessageChunk:
    made = MessageChunk(CryptographyNone(), b"", chunk_type=kind)
    made.MessageHeader.ChannelId = channel
    made.SequenceHeader = ua.SequenceHeader(SequenceNumber=number, RequestId=request)
    return made


@pytest.mark.parametrize(
    "chunks",
    [
        [chunk(5), chunk(6, 2), chunk(7, 3)],
        [chunk(5, 1, MORE), chunk(6, 1), chunk(7, 2)],
        [chunk(LAST_SEQUENCE_NUMBER), chunk(1)],
    ],
)
def test_chunks_in_order_are_taken(chunks: list[MessageChunk]) -> None:
    order = ChunkOrder()
    for item in chunks:
        order.check(item, CHANNEL)


@pytest.mark.parametrize("following", [chunk(5), chunk(7), chunk(1), chunk(6, 2), chunk(6, channel=8)], ids=str)
def test_chunk_out_of_order_ends_the_channel(following: MessageChunk) -> None:
    order = ChunkOrder()
    order.check(chunk(5, 1, MORE), CHANNEL)
    with pytest.raises(ua.UaStatusCodeError) as caught:
        order.check(following, CHANNEL)
    assert caught.value.code == ua.StatusCodes.BadSecurityChecksFailed
