"""What stands in for a plant: a broker, equipment and a MES, for the demo, the tests and trying things out."""
