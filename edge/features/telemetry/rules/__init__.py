"""How a rule decides: pure functions from a rule, its state and a sample to the next state and its findings."""
