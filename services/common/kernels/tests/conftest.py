"""The kernel tests build the library first if it is not up to date, so they never test an old one."""

from collections.abc import Iterator

import pytest

from services.common.kernels import build, kernel_impl
from services.common.kernels.library import library, set_tier


@pytest.fixture(scope="session", autouse=True)
def built() -> None:
    build.build(build.find_compilers())


@pytest.fixture(params=["scalar", "auto"])
def tier(request: pytest.FixtureRequest, built: None) -> Iterator[str]:
    """Plain C, then the best tier of this CPU, which is plain C again where there is no other."""
    del built
    before = kernel_impl()
    set_tier(library(), request.param)
    yield request.param
    set_tier(library(), before)
