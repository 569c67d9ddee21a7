"""Simulated devices, recipes and plants."""

from edge.app.feature import Feature, Noun

FEATURE = Feature(
    "simulator",
    commands={
        "demo": Noun(
            "edge.features.simulator.cli.demo", "Run a scene on this machine: a whole job, an alarm, or flows."
        ),
        "simulate": Noun(
            "edge.features.simulator.cli.simulate", "Run a recipe with simulated equipment, in virtual time or live."
        ),
        "sim": Noun("edge.features.simulator.cli.sim", "Run simulated equipment."),
    },
)
