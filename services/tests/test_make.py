"""The Makefile where a PC is not as it should be."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_an_environment_whose_python_is_gone_is_made_anew(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "build" / "stamps").mkdir(parents=True)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "pyvenv.cfg").touch()
    (tmp_path / ".venv" / "bin" / "python").symlink_to(tmp_path / "gone")
    told = subprocess.run(["make", "help"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "does not run any more: making it anew" in told
    assert not (tmp_path / ".venv").exists()
    assert not (tmp_path / "build" / "stamps").exists()
    told = subprocess.run(["make", "help"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "making it anew" not in told
