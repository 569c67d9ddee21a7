"""The script of commits is sent once to a server that does not know it."""

from pathlib import Path

from edge.store.commit import Committed, operation, pack
from edge.store.commit_script import COMMIT_SHA, run_commit
from edge.store.connection import CommandConnection, Endpoint
from tests.store.servers import own_server


async def test_script_is_known_after_the_first_commit(tmp_path: Path) -> None:
    async with own_server(tmp_path) as server:
        connection = CommandConnection(Endpoint(path=server.url[7:]))
        for number in range(2):
            assert await run_commit(connection, pack(operation("SET", "word", str(number)))) == Committed()
            assert await connection.call(("SCRIPT", "EXISTS", COMMIT_SHA)) == [[1]]
        assert await connection.call(("GET", "word")) == ["1"]
        connection.close()
