"""The SFC engine: pure functions from a net, a run and a signal to the next run and its requests."""
