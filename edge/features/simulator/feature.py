"""Simulated devices, recipes and plants."""

from edge.app.feature import Feature, Noun

FEATURE = Feature(
    "simulator",
    simulation="edge.features.simulator.virtual_simulation:simulate_script",
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
