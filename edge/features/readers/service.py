"""Opens what readers need: the jobs of codes, until the service of jobs exists, and from then on."""

from contextlib import AsyncExitStack
from functools import partial

from edge.app.feature import Opened
from edge.app.parts import GatewayParts, Works
from edge.features.readers.scanned_jobs import ScannedJobs


async def prepare_readers(_stack: AsyncExitStack, core: GatewayParts) -> Opened:
    """Return where readers put the jobs of codes."""
    scanned = ScannedJobs(core.source)
    return Opened(port=scanned, equipment={"reader": (scanned.put,)})


async def open_readers(stack: AsyncExitStack, core: GatewayParts, works: Works) -> None:
    """Start the jobs of codes until the stack closes."""
    scanned: ScannedJobs = core.ports["readers"]
    await core.keep_running(stack, "scanned jobs", partial(scanned.run, works.jobs))
