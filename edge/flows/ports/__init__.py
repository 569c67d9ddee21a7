"""What nodes read from and act on: job results, the broker, resources over HTTP, files, jobs."""
