"""What every room uses: errors, files, instants, ticks, listeners, back-off."""
