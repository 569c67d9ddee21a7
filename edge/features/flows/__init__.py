"""Cyclic work next to the jobs: plans, cycles, the scheduler, node kinds and workers."""
