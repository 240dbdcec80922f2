"""Bytes in and out: what may be written where, how it is written, what a file is, how much of it is read."""
