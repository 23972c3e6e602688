"""What the figures are judged by, in one place for those who measure and for the report.

Not here: what stands beside each figure in the JSON itself (kernels, trainer, learning).
"""

FEWER_BYTES = {"int8": 3.9, "int4": 7.8}  # than fp32, on the wire
INT4_EXCHANGE_S = 0.21  # of a million values, two workers, on links of the usual rate
OF_LINK_LIMIT = 1.2
FASTER_THAN_FLOWER, OF_BARE_ZEROMQ = 5.0, 1.3
MODELS_FOR_TWICE_THE_WORKERS = 1.0  # so much more memory of the master is still the same

SAMPLES_OF_ONE = {2: 1.8, 4: 3.5}  # by the number of workers, at the usual link
SAMPLES_OF_DDP = 100.0  # at every link
ESTIMATE_WITHIN = 0.25
UTILISATION, OF_DIVIDED, ROUNDS_TO_RECOVER = 0.9, 1.15, 3  # of workers of unequal speed

POINTS_BELOW_EVERY_STEP, FEWER_BYTES_THAN_EVERY_STEP = 0.5, 200
