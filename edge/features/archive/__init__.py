"""The archive of results: each ended job with what happened, for months."""
