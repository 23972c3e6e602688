"""Real containers on a real engine, from the images that `make images` builds (`make containers` runs these tests)."""
