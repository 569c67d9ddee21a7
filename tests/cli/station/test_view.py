"""The view of a scope has all its permitted resources and the limit in force."""

from edge.cli.station.view import StationView, WorkMasterView, load_view
from edge.model.acceptance import ResourceKind
from edge.model.job_state import Cause
from edge.store import resources
from tests.station.plant import LINEAR, SCOPE, Plant, order


async def test_view_of_a_scope_equals_its_store_content(plant: Plant) -> None:
    keys = plant.store.keys
    await plant.teach("paper", {}, dataschema="urn:paper")
    await plant.teach("broken", {"steps": []})
    await plant.store.commit(resources.allow(keys, ResourceKind.EQUIPMENT, SCOPE, ["wrench", "camera"]))
    await plant.store.commit(resources.set_max_job_orders(keys, SCOPE, 4))
    await plant.order(Cause.STORE, order("J1"))
    assert await load_view(plant.store, SCOPE, 1000) == StationView(
        scope=SCOPE,
        open_job_orders=1,
        max_job_orders=4,
        limit_set=True,
        work_masters=(
            WorkMasterView("broken", "", None, None),
            WorkMasterView("linear", "", len(LINEAR["steps"]), 2),  # type: ignore[arg-type]
            WorkMasterView("paper", "", None, None),
        ),
        resources={kind.value: ["camera", "wrench"] if kind is ResourceKind.EQUIPMENT else [] for kind in ResourceKind},
    )
