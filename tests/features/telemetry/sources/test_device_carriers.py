"""A device belongs to the carrier that it was bound to last; its samples have that carrier."""

from edge.features.telemetry.settings import MqttSourceSettings
from edge.features.telemetry.sources.device_carriers import DeviceCarriers
from edge.features.telemetry.sources.mqtt import SampleSource
from edge.links.mqtt import Message
from edge.ports.sample_lines import Sample
from tests.equipment.samples import Sink


def test_rebinding_replaces_the_carrier_and_devices_are_bounded() -> None:
    carriers = DeviceCarriers(most=2)
    for device, carrier in (("w1", "C1"), ("w2", "C1"), ("w1", "C2"), ("w3", "C3")):
        carriers.bind(device, carrier)
    assert [carriers.of(text) for text in ("w1", "w2", "w3")] == ["C2", None, "C3"]
    carriers.unbind_carrier("C2")
    assert carriers.of("w1") is None


async def test_samples_of_a_device_have_the_carrier_that_it_is_bound_to() -> None:
    sink, carriers = Sink(), DeviceCarriers()
    binding = SampleSource("b", MqttSourceSettings(topic="carriers/+/device", carrier="{2}"), sink, lambda: 7, carriers)
    watch = MqttSourceSettings(topic="watch/+/pulse", device="{2}", tag="pulse")
    samples = SampleSource("w", watch, sink, lambda: 7, carriers)
    for carrier, device in (("C1", b'"w1"'), ("C2", b'"w1"'), ("C2", b"null")):
        await binding.take(Message(f"carriers/{carrier}/device", device))
        await samples.take(Message("watch/w1/pulse", b"70"))
    assert [sample.carrier for sample in sink.taken if isinstance(sample, Sample)] == ["C1", "C2", None]
