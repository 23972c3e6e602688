"""What the master tells, as the API describes it: the names that a program may rely on.

For the description only. Answers go out as the master gave them, whole and unchecked, so a master that tells more (or
is older) breaks no page; that they are as described here is shown against a real master (services/tests/contract).
"""
