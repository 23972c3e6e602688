"""INIT with real processes: when it begins, that a term has it once, what it finds, and what waits for it."""

import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from services.common.errors import MaheError
from services.common.kernels import build
from services.common.kernels.paths import SOURCE_FOLDER
from services.tests.system import poisoned_master
from services.tests.system.cluster import Cluster, finished, version

pytestmark = pytest.mark.system
LOOKS = {"MAHE_CONSOLE_UI_WAIT_S": "3600"}  # nothing begins by itself
READY = "[INIT] ready"


def init_state(state: dict[str, Any]) -> str:
    return str(state["init"]["state"])


def done(state: dict[str, Any]) -> bool:
    return init_state(state) == "done"


def page_opens(cluster: Cluster) -> None:
    cluster.api._ask("POST", "/api/v1/ui-ready", None)


def checks(cluster: Cluster) -> dict[str, str]:
    """What INIT found: level by code."""
    return {one["code"]: one["level"] for one in cluster.api.snapshot()["init"]["checks"]}


def refusal(cluster: Cluster) -> MaheError:
    with pytest.raises(MaheError) as refused:
        cluster.run(dataset="gauss3", rounds=1)
    return refused.value


def test_a_term_has_it_once_however_many_pages_and_consoles_there_are(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.start_master()
        cluster.start_console(**LOOKS)
        assert init_state(cluster.api.snapshot()) == "waiting"
        assert cluster.api.alive(), "healthz is green before it"
        with pytest.raises(MaheError):
            cluster.api.get("/readyz")
        pages = [threading.Thread(target=page_opens, args=(cluster,)) for _ in range(2)]
        for page in pages:
            page.start()
        for page in pages:
            page.join()
        cluster.until(done, "INIT")
        assert cluster.api.get("/readyz")["ready"] is True
        cluster.kill("console")
        cluster.start_console(MAHE_CONSOLE_UI_WAIT_S="0")
        page_opens(cluster)
        cluster.run(dataset="gauss3", rounds=1)
        assert cluster.log("master").count(READY) == 1
        assert set(checks(cluster)) == {"KERNELS", "DISK", "DATASETS", "ADDRESSES_LOCAL", "CLOCK"}

        cluster.kill("master")
        cluster.start_master(MAHE_ADVERTISE="192.0.2.7")
        cluster.until(lambda state: state["term"] == 2 and done(state), "INIT in the new term, without a page")
        assert cluster.log("master").count(READY) == 2
        assert checks(cluster)["ADDRESSES"] == "ok"


def test_without_a_page_it_begins_by_itself(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.start_master()
        cluster.start_console(MAHE_CONSOLE_UI_WAIT_S="1")
        cluster.until(done, "INIT")
        assert "nobody opened the page within 1 s" in cluster.log("console")


def test_a_run_begins_it_and_one_that_goes_on_never_waits_for_it(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.start_master()
        cluster.start_console(**LOOKS)
        cluster.start_worker("worker-1")
        cluster.run(dataset="digits", k_steps=400, rounds=5)
        log = cluster.log("master")
        assert log.index(READY) < log.index("is created"), "the run comes after it"
        cluster.until(lambda state: version(state) >= 1, "round 1")
        cluster.kill("master")
        cluster.start_master()
        cluster.until(lambda state: state["term"] == 2, "the new term")
        state = cluster.until(finished, "the run to finish")
        assert init_state(state) == "waiting"


def test_a_folder_that_is_gone_is_an_error_line_and_the_master_lives(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.start_master()
        cluster.start_console(**LOOKS)
        (tmp_path / "master").rename(tmp_path / "elsewhere")
        page_opens(cluster)
        cluster.until(done, "INIT")
        (tmp_path / "elsewhere").rename(tmp_path / "master")
        assert checks(cluster)["DISK_UNWRITABLE"] == "error"
        folder = tmp_path / "master"
        assert f"[ERROR] the data folder {folder} cannot be written (No such file or directory)" in cluster.log(
            "master"
        )
        cluster.run(dataset="gauss3", rounds=1)


@pytest.mark.timeout(120)
def test_a_damaged_kernel_is_an_error_line_and_no_run_starts(tmp_path: Path) -> None:
    """A library that loads, with a plus for a minus in one kernel."""
    root = tmp_path / "libkernel"
    for part in ("include", "src"):
        shutil.copytree(SOURCE_FOLDER / part, root / part)
    file = root / "src" / "reference" / "adamw.c"
    file.write_text(file.read_text("utf-8").replace("params[i] - step->lr", "params[i] + step->lr"), "utf-8")
    build.build(build.find_compilers(), root=root, folder=tmp_path / "lib", asm=False)
    with Cluster(tmp_path) as cluster:
        wrong = {poisoned_master.FOLDER: str(tmp_path / "lib"), "MAHE_KERNEL": ""}
        cluster.start_master(poisoned_master.__name__, **wrong)
        cluster.start_console(**LOOKS)
        began = time.monotonic()
        error = refusal(cluster)
        assert time.monotonic() - began < 4
        assert error.code == "NOT_READY"
        assert error.sentence.startswith("INIT has found that adamw on tier scalar differs from NumPy for ")
        assert "[ERROR] adamw on tier scalar differs from NumPy for " in cluster.log("master")
        assert checks(cluster)["KERNELS_WRONG"] == "error"
        assert refusal(cluster).code == "NOT_READY", "also the second time"
        assert cluster.api.snapshot()["run"] is None
