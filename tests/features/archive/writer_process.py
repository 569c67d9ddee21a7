"""Archives the jobs of a store until it is killed; takes its URL, the prefix of its keys and the file."""

import asyncio
import sys
from pathlib import Path

from edge.config import RedisSettings
from edge.features.archive.database import ArchiveFile
from edge.features.archive.writer import ArchiveWriter
from edge.store.open_store import open_store
from tests.features.archive.conftest import LIMITS
from tests.station.plant import NOW, SCOPE


async def archive(url: str, prefix: str, file: Path) -> None:
    """Archive without a pause."""
    async with open_store(RedisSettings(url=url, prefix=prefix), "edge") as store:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await ArchiveWriter(store, SCOPE, ArchiveFile(file, LIMITS), lambda: NOW, 0.001, retry_s=0.001).run()


if __name__ == "__main__":
    asyncio.run(archive(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
