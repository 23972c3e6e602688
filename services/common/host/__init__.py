"""Platform glue for the shells of every service: files, locks, child processes, facts of this PC, log lines."""
