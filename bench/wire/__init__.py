"""What a round costs on the wire: bytes, time and memory against what the link allows, Flower, hivemind, bare ZeroMQ.

`make bench-wire`, or `python -m bench.wire`. Real masters and workers, which do everything but train (null_trainer.py).
Nothing timed is asserted: a target that is missed is printed.
"""
