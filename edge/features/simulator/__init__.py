"""A simulated plant: a broker, equipment and a MES, for the demo, the tests and experiments."""
