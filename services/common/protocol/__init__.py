"""The wire protocol `MAHE/1`: messages, codec, limits and the join string. Knows bytes, not sockets and not clocks."""
