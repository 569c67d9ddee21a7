"""Cyclic work beside the jobs: plans, cycles, the scheduler, node kinds and workers."""
