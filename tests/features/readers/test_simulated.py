"""The simulated reader sends each code to the gateway that is connected, and ends with its input."""

import asyncio
import subprocess
import sys

from edge.features.readers.simulated import open_simulated_reader


async def test_code_waits_for_a_gateway_and_goes_to_it() -> None:
    async with open_simulated_reader() as reader:
        waiting = asyncio.create_task(reader.read("S1"))
        await asyncio.sleep(0)
        assert not waiting.done()
        received, writer = await asyncio.open_connection("127.0.0.1", reader.port)
        assert await received.readline() == b"S1\r\n"
        await waiting
        writer.close()


def test_command_sends_the_lines_of_its_input_and_ends() -> None:
    command = [sys.executable, "-m", "edge", "sim", "reader", "--port", "0"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin
    assert process.stdout
    port = int(process.stdout.readline().rpartition(":")[2])

    async def receive() -> bytes:
        received, writer = await asyncio.open_connection("127.0.0.1", port)
        assert process.stdin
        process.stdin.write("S1\n\nS2\n")
        process.stdin.close()
        lines = await received.readline() + await received.readline()
        writer.close()
        return lines

    assert asyncio.run(receive()) == b"S1\r\nS2\r\n"
    assert process.wait(10) == 0
    process.stdout.close()
