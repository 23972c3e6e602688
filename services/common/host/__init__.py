"""Platform glue for the shells of every service: files, locks, child processes, this PC's facts, log lines. No sockets."""
