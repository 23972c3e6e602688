"""Bundled data files, and the script that rebuilds them."""
