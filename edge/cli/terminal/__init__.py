"""What every command shares: output, options, access to the store, stop signals."""
