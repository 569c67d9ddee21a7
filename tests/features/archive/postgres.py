"""A PostgreSQL server of a test's own, which it may stop and start again."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.free_ports import free_port

_USER = "postgres"


def programs() -> Path | None:
    """Return the folder of Debian's newest PostgreSQL server, or that of the one on the path; None without one."""
    folders = [initdb.parent for initdb in sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))]
    on_path = shutil.which("initdb")
    return folders[-1] if folders else Path(on_path).parent if on_path else None


class Postgres:
    """One server on a loopback port with its data in a directory; it does not run as root."""

    def __init__(self, directory: Path, binaries: Path) -> None:
        self.port = free_port()
        self.url = f"postgresql://{_USER}@127.0.0.1:{self.port}/postgres"
        self._data = directory / "data"
        self._binaries = binaries
        self._process: subprocess.Popen[bytes] | None = None
        self._call("initdb", "--auth=trust", f"--username={_USER}", "--encoding=UTF8", "--no-locale", "--no-sync")

    def _command(self, program: str, *arguments: str) -> list[str]:
        own = [str(self._binaries / program), "-D", str(self._data), *arguments]
        as_user = ["setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups"]
        return [*as_user, *own] if os.geteuid() == 0 else own

    def _call(self, program: str, *arguments: str) -> None:
        subprocess.run(self._command(program, *arguments), check=True, capture_output=True, cwd="/")

    def start(self) -> None:
        """Start it and wait until it answers."""
        options = ("-p", str(self.port), "-h", "127.0.0.1", "-k", str(self._data), "-F")
        self._process = subprocess.Popen(
            self._command("postgres", *options), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/"
        )
        end = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url).close()
            except psycopg.OperationalError:
                assert time.monotonic() < end, "PostgreSQL does not answer"
                time.sleep(0.02)
            else:
                return

    def kill(self) -> None:
        """End it at once; what was committed stays."""
        if self._process is not None:
            self._process.send_signal(3)  # SIGQUIT: without a checkpoint
            self._process.wait(60)
            self._process = None

    def reset(self) -> None:
        """Remove what was written."""
        with psycopg.connect(self.url) as connection:
            connection.execute("DROP SCHEMA IF EXISTS microdcs CASCADE")

    def rows(self, query: str) -> list[tuple[object, ...]]:
        """Return the rows of a query."""
        with psycopg.connect(self.url) as connection:
            return connection.execute(query.encode()).fetchall()


@contextmanager
def own_postgres() -> Iterator[Postgres | None]:
    """Start a server for the length of the block; None where this machine has no PostgreSQL."""
    binaries = programs()
    if binaries is None:
        yield None
        return
    # Not below the directory of the tests: its user may not enter that of root.
    directory = Path(tempfile.mkdtemp(prefix="postgres-"))
    try:
        if os.geteuid() == 0:
            user = pwd.getpwnam(_USER)
            os.chown(directory, user.pw_uid, user.pw_gid)
        server = Postgres(directory, binaries)
        server.start()
        try:
            yield server
        finally:
            server.kill()
    finally:
        shutil.rmtree(directory)
