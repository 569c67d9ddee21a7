"""What happens at a station: jobs, runs, dispatch, timers, recovery, and how its equipment is."""
