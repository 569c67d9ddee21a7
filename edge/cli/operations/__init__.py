"""`edge operations`: schedules, shows, watches and cancels work that takes longer than a second and is not a job."""
