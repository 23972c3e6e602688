"""The pure core of the master: events and time in, commands out. No sockets, no clock, no disk, no tensors."""
