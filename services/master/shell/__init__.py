"""The master's imperative side: sockets, threads, disk, and one function for each of the coordinator's commands."""
