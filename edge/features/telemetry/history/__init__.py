"""History of samples: daily files of Arrow record batches, written in large chunks and read one chunk at a time."""
