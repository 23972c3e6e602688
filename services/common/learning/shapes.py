"""How wide data and models may be."""

INPUTS_MAX = 65_536
CLASSES_MAX = 4096
