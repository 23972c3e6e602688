"""Real processes and sockets under faults, under many workers and over a long time: measured, printed, written as JSON.

`python -m services.tests.chaos` (faults), `.delay` (what one fault costs), `.thousand` (1,000 sockets), `.soak`.
Not for what only a simulator can show (services/tests/simulation): here the seed fixes the faults, not the outcome.
"""
