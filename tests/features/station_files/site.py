"""A folder of station files with an object of each kind."""

import json
from pathlib import Path

from edge.config import Settings
from edge.features.station_files.apply import read_files
from edge.features.station_files.content import StationFiles
from edge.features.station_files.documents import StationDocuments
from edge.model.recipe import RECIPE_DATASCHEMA
from tests.station.plant import LINEAR

SCOPE = "station-1"
MASTER = {"ID": "axle", "Description": {"Text": "axle"}, "dataschema": RECIPE_DATASCHEMA, "data": LINEAR}
RULE = {"id": "hot", "kind": "limit", "tag": "t1", "severity": 400, "limits": {"high": {"at": 50}}}
TAG = {"tag": "oven.temp", "unit": "CEL", "high": 400}
FLOW = {
    "id": "count",
    "interval_seconds": 10,
    "nodes": [{"id": "one", "kind": "constant", "config": {"value": 1}}],
    "edges": [],
}
LISTS = {"equipment": ["wrench", "camera"], "material_classes": ["bolt"], "personnel": ["anna"]}
NUMBER_OF_OBJECTS = 10


def write(folder: Path, name: str, content: object) -> Path:
    """Write a file of the folder."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def make_site(folder: Path) -> Path:
    """Write files with an object of each kind."""
    write(folder, f"scopes/{SCOPE}/station.json", {"max_downloadable_job_orders": 20, **LISTS})
    write(folder, f"scopes/{SCOPE}/workmasters/axle.json", MASTER)
    write(folder, "tags/oven.json", [TAG])
    write(folder, "rules/hot.json", [RULE])
    write(folder, "flows/count.json", FLOW)
    write(folder, "flows/stopped/idle.json", {**FLOW, "id": "idle"})
    write(folder, "README.md", "What this is.")
    return folder


def new_documents() -> StationDocuments:
    """Return the documents of a site without node kinds of its own."""
    return StationDocuments(Settings())


async def read_site(folder: Path) -> StationFiles:
    """Read the files of such a site."""
    return await read_files(folder, new_documents())
