"""Open pages are notified of what they show."""

import msgspec

from edge.features.page.serving import _ShownEquipment
from edge.model.equipment_health import EquipmentHealth


def test_counters_of_equipment_do_not_update_the_page() -> None:
    shown_equipment, wrench = _ShownEquipment(), EquipmentHealth(name="wrench", kind="mqtt")
    assert shown_equipment.has_changed([wrench])
    assert not shown_equipment.has_changed([msgspec.structs.replace(wrench, answered=7)])
    assert shown_equipment.has_changed([msgspec.structs.replace(wrench, connected=False)])
