"""`python -m bench.report`: the performance table from bench/results, and every target that was missed.

`--write` puts the table into both READMEs, as `MAHE_REWRITE=1 pytest services/tests/test_docs.py` does.
"""

import argparse
import sys
from pathlib import Path

from bench.report import readme, results, table


def main() -> int:
    """Read the command line, print, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.report", description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="into README.md and README.zh-CN.md as well")
    parser.add_argument("--results", type=Path, default=results.RESULTS, metavar="FOLDER", help="with the JSON files")
    given = parser.parse_args()
    if given.write and given.results != results.RESULTS:
        parser.error(f"--write takes the figures in {results.RESULTS}: leave --results out, or --write")
    show(given.results)
    if given.write:
        readme.write()
    return 0


def show(folder: Path) -> None:
    """The table, then what was missed."""
    print(readme.english(folder))
    print("\nMissed targets, of all that was measured:")
    for text in table.missed(results.load(folder)):
        print(f"  {text}")


if __name__ == "__main__":
    sys.exit(main())
