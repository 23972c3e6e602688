"""Rebuilds digits.npz from scikit-learn, installed in a throwaway environment, and compares it byte for byte.

    python -m services.common.learning.data.rebuild_digits [--write]

Without --write nothing here is changed; exit status 1 means the bytes differ. Needs a package index.
The archive is a plain .npz with stored (not deflated) members and fixed dates, so its bytes do not depend on the
version of NumPy or zlib.
"""

import io
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

TARGET = Path(__file__).with_name("digits.npz")
SCIKIT_LEARN = "scikit-learn>=1.4,<2"
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)
EXPORT = """
import sys, numpy, sklearn.datasets
digits = sklearn.datasets.load_digits()
images, labels = digits.data.astype("uint8"), digits.target.astype("uint8")
assert (images == digits.data).all() and (labels == digits.target).all()
numpy.save(sys.argv[1], images, allow_pickle=False)
numpy.save(sys.argv[2], labels, allow_pickle=False)
"""


def archive_bytes(images: Bytes, labels: Bytes) -> bytes:
    """The .npz of uint8[1797, 64] images and uint8[1797] labels; the same bytes everywhere."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, array in (("images", images), ("labels", labels)):
            member = io.BytesIO()
            np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", ZIP_EPOCH)
            info.create_system = 3  # else it names the system that wrote it
            archive.writestr(info, member.getvalue())
    return out.getvalue()


def fetch(folder: Path) -> tuple[Bytes, Bytes]:
    """Installs scikit-learn into a new environment under `folder` and reads the images and labels out of it."""
    venv.create(folder / "venv", with_pip=True)
    scripts = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
    subprocess.run([scripts / "python", "-m", "pip", "install", "--quiet", SCIKIT_LEARN], check=True)
    images, labels = folder / "images.npy", folder / "labels.npy"
    subprocess.run([scripts / "python", "-c", EXPORT, images, labels], check=True)
    return np.load(images, allow_pickle=False), np.load(labels, allow_pickle=False)


def main() -> int:
    """0 when the file has the bytes that scikit-learn gives, or was written; 1 when they differ."""
    with tempfile.TemporaryDirectory() as folder:
        built = archive_bytes(*fetch(Path(folder)))
    if "--write" in sys.argv[1:]:
        TARGET.write_bytes(built)
        sys.stdout.write(f"{TARGET.name}: wrote {len(built)} bytes\n")
        return 0
    same = TARGET.read_bytes() == built
    sys.stdout.write(f"{TARGET.name}: {'identical' if same else 'DIFFERS'} ({len(built)} bytes rebuilt)\n")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
