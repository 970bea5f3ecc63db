"""`make wheel-check`: build an sdist and a wheel, install them outside the checkout, and use them.

The wheel, whose tag names no Python, in a fresh virtual environment; the same file with every other Python that is on
the machine, there without torch, for all that needs none; and the sdist where no compiler works, in which case
everything must still work and say what is missing.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
NO_COMPILER = {"CC": "/bin/false", "CXX": "/bin/false"}


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run([sys.executable, "-m", "build", "--outdir", str(folder / "dist"), str(ROOT)], cwd=folder)
        (wheel,), (sdist,) = folder.glob("dist/*.whl"), folder.glob("dist/*.tar.gz")
        print(f"built {wheel.name} ({wheel.stat().st_size:,} bytes) and {sdist.name} ({sdist.stat().st_size:,} bytes)")
        assert re.fullmatch(r"exactstate-[\d.]+-py3-none-(?!any)\w+\.whl", wheel.name), wheel.name

        python = environment(Path(sys.executable), folder / "clean")
        install(python, str(wheel), cwd=folder)
        assert run([str(python.parent / "exactstate"), "--version"], cwd=folder).startswith("exactstate ")
        smoke(python, folder, kernels=True, env={})
        print("the wheel works, with its kernels", flush=True)

        for other in other_pythons():
            without_torch(environment(other, folder / other.name), wheel, folder)
            print(f"the same file works with {other.name}: all that needs no torch", flush=True)

        target = folder / "without_kernels"
        install(python, "--no-deps", "--target", str(target), str(sdist), cwd=folder, env=NO_COMPILER)
        smoke(python, folder, kernels=False, env={"PYTHONPATH": str(target)})
        print("the sdist works without a compiler, and says so")


def other_pythons() -> list[Path]:
    """One interpreter for every other version that the package is for, on the path or under ~/.pyenv."""
    found = []
    for minor in range(11, 20):
        name = f"python3.{minor}"
        places = [shutil.which(name), *Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/{name}")]
        there = [Path(place) for place in places if place is not None and works(Path(place))]
        if minor != sys.version_info.minor and there:
            found.append(there[0])
    return found


def works(python: Path) -> bool:
    return subprocess.run([python, "-c", "import ensurepip, venv"], capture_output=True).returncode == 0


def environment(python: Path, folder: Path) -> Path:
    """The interpreter of a fresh virtual environment."""
    run([str(python), "-m", "venv", str(folder)], cwd=folder.parent)
    return folder / "bin" / "python"


def install(python: Path, *what: str, cwd: Path, env: dict[str, str] | None = None) -> None:
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, "--constraint", str(ROOT / "constraints.txt"), *what], cwd=cwd, env=env)


def without_torch(python: Path, wheel: Path, folder: Path) -> None:
    """The wheel and its dependencies except torch: kernels, machines, logs and the checker work."""
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    install(python, "--no-deps", str(wheel), cwd=folder)
    install(python, *(name for name in dependencies if not name.startswith("torch")), cwd=folder)
    exactstate = [str(python), "-m", "exactstate"]
    assert run([str(python), "-m", "exactstate.native"], cwd=folder).startswith("exactstate: compiled kernels ready")
    run([*exactstate, "check", "run-with/certificate.json"], cwd=folder)
    run([*exactstate, "convert", "run-with/machine.json", "-o", "machine.dot"], cwd=folder)
    (folder / "words.txt").write_text("1 0 1\n")
    assert run([*exactstate, "run", "run-with/machine.json", "words.txt", "--final"], cwd=folder).split() == ["0"]
    (folder / "log.txt").write_text("open/ok close/ok\nclose/no open/ok\n")
    run([*exactstate, "learn", "log.txt", "-o", "learned.dot"], cwd=folder)


def smoke(python: Path, folder: Path, *, kernels: bool, env: dict[str, str]) -> None:
    """The first commands of a new user, with the expected exit codes; nothing but exactstate is installed."""
    exactstate = [str(python), "-m", "exactstate"]
    place = run([str(python), "-c", "import exactstate; print(exactstate.__file__)"], cwd=folder, env=env).strip()
    assert not Path(place).is_relative_to(ROOT), place
    absent = "from importlib.util import find_spec; print([n for n in ('paper', 'benchmarks', 'web') if find_spec(n)])"
    assert run([str(python), "-c", absent], cwd=folder, env=env).strip() == "[]"
    report = json.loads(
        run([*exactstate, "doctor", "--no-measure", "--json"], cwd=folder, env=env, code=0 if kernels else 1)
    )
    compiled = next(one for one in report["backends"] if one["name"] == "cpu")
    assert compiled["available"] == kernels, compiled
    assert kernels or "install a C++17 compiler" in compiled["reason"]
    out = f"run-{'with' if kernels else 'without'}"
    row = json.loads(run([*exactstate, "train", "Z2", "--out", out, "--json"], cwd=folder, env=env))
    assert row["certified"]
    assert Path(folder, row["report"]).read_text().startswith("<!doctype html>")
    run([*exactstate, "check", f"{out}/certificate.json"], cwd=folder, env=env)
    run([*exactstate, "sweep", out, "--max-length", "4096"], cwd=folder, env=env)
    run([*exactstate, "figure", "machine", "S3", "-o", "s3.svg"], cwd=folder, env=env)


def run(command: list[str], *, cwd: Path, env: dict[str, str] | None = None, code: int = 0) -> str:
    """What the command prints; exits if its exit code is not the expected one."""
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=clean | (env or {}), capture_output=True, text=True)
    if done.returncode != code:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}, not {code}:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
