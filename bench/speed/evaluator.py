"""The shipped evaluator with `mnist10k`. Run by the master."""

from bench.speed import mnist
from services.master.shell import evaluator

if __name__ == "__main__":
    mnist.register()
    evaluator.main()
