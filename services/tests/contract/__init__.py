"""The API keeps to its own description, whatever it is asked: schemathesis over a real console and a real master.

`python -m services.tests.contract` asks thousands of times (make release); the test beside it asks for seconds.
"""
