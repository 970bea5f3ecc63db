"""`make wheel-check`: build an sdist and a wheel, install them outside the checkout, and use them.

Once as a wheel with compiled kernels, in a fresh virtual environment; once from the sdist where no compiler works, in
which case everything must still work and say what is missing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
NO_COMPILER = {"CC": "/bin/false", "CXX": "/bin/false"}


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run([sys.executable, "-m", "build", "--outdir", str(folder / "dist"), str(ROOT)], cwd=folder)
        (wheel,), (sdist,) = folder.glob("dist/*.whl"), folder.glob("dist/*.tar.gz")
        print(f"built {wheel.name} ({wheel.stat().st_size:,} bytes) and {sdist.name} ({sdist.stat().st_size:,} bytes)")

        venv.create(folder / "clean", with_pip=True)
        python = folder / "clean" / "bin" / "python"
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run([*pip, "--constraint", str(ROOT / "constraints.txt"), str(wheel)], cwd=folder)
        assert run([str(python.parent / "exactstate"), "--version"], cwd=folder).startswith("exactstate ")
        smoke(python, folder, kernels=True, env={})
        print("the wheel works, with its kernels")

        target = folder / "without_kernels"
        run([*pip, "--no-deps", "--target", str(target), str(sdist)], cwd=folder, env=NO_COMPILER)
        smoke(python, folder, kernels=False, env={"PYTHONPATH": str(target)})
        print("the sdist works without a compiler, and says so")


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
