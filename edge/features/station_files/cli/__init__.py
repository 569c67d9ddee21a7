"""Commands for the files of a station."""
