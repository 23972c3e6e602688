"""What the command `mahe` does: it starts master, workers and console as processes, watches them, and ends them all.

Not for their inside: it knows only their environment variables, the files they write, and the console's API.
"""
