"""The part of `edge jobs results` that copies traces and files."""
