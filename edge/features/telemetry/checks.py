"""What `edge doctor` examines of telemetry."""

from collections.abc import Iterator

from edge.app.installation import advise, store_advice
from edge.config import Settings
from edge.features.telemetry.mirror_check import examine_mirrors
from edge.features.telemetry.settings import mirrors_of
from edge.features.telemetry.volatile_check import UNIT, examine_volatile_store
from edge.model.finding import Examination


def checks(settings: Settings) -> Iterator[Examination]:
    """Yield the examinations of mirrors and of the store of volatile samples."""
    if mirrors_of(settings):
        yield "mirrors", advise(examine_mirrors(settings), store_advice(settings.redis.url))
    yield "volatile store", advise(examine_volatile_store(settings), f"Start it: sudo systemctl start {UNIT}")
