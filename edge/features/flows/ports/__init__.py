"""The access of nodes to job results, the broker, resources over HTTP, files and jobs."""
