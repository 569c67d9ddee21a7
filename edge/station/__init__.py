"""What happens at a station: jobs, runs, dispatch, timers, recovery."""
