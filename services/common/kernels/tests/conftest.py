"""The kernel tests build the library first if it is not up to date, so they never test an old one."""

import pytest

from services.common.kernels import build


@pytest.fixture(scope="session", autouse=True)
def built() -> None:
    build.build(build.find_compilers())
