"""Run the tests of the compiled kernels under AddressSanitizer and UndefinedBehaviorSanitizer: `make sanitize`.

    python -m tests.native.sanitize [pytest arguments]

The kernels are built once more with the sanitizers, into build/sanitized, and the tests run on that library with the
sanitizers' runtime preloaded. An access outside a buffer or an overflow ends the run with its report.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "build" / "sanitized"
FLAGS = (
    "-std=c++17", "-O1", "-g", "-fno-omit-frame-pointer", "-pthread", "-fno-math-errno", "-ffp-contract=off",
    "-Wno-psabi", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fPIC",
)  # fmt: skip
TESTS = (
    "tests/native", "tests/ops/test_scan.py", "tests/ops/test_invalid_calls.py", "tests/ops/test_segments.py",
    "tests/ops/test_gumbel.py", "tests/ops/test_gradient_kernels.py", "tests/ops/test_screen.py",
    "tests/ops/test_soft_kernels.py", "tests/nn/test_nfsm.py", "tests/nn/test_nfsm_gradients.py",
    "tests/nn/test_near_ties.py",
    "tests/runtime/test_interpreter.py", "tests/runtime/test_heads.py", "tests/runtime/test_stream.py",
    "tests/runtime/test_tokenizer.py", "tests/runtime/test_filter.py", "tests/automata/test_run.py",
)  # fmt: skip


def build() -> Path:
    """The kernels with sanitizers; built again when a source is newer."""
    library, folder, compiler = BUILT / "_kernels.so", ROOT / "exactstate" / "csrc", os.environ.get("CXX", "g++")
    headers = max(path.stat().st_mtime for path in folder.glob("*.hpp"))
    BUILT.mkdir(parents=True, exist_ok=True)
    objects = []
    for source in sorted(folder.glob("*.cpp")):
        made = BUILT / f"{source.stem}.o"
        if not made.exists() or made.stat().st_mtime < max(headers, source.stat().st_mtime):
            subprocess.run([compiler, *FLAGS, "-c", str(source), "-o", str(made)], check=True)
        objects.append(made)
    if not library.exists() or library.stat().st_mtime < max(made.stat().st_mtime for made in objects):
        subprocess.run([compiler, *FLAGS, "-shared", *map(str, objects), "-o", str(library)], check=True)
    return library


def runtime_of(name: str) -> str:
    """The path of a runtime library of the compiler."""
    found = subprocess.run(
        [os.environ.get("CXX", "g++"), f"-print-file-name={name}"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return str(Path(found).resolve())


def environment(library: Path) -> dict[str, str]:
    """Variables that make Python load the sanitized kernels."""
    preloaded = ":".join(runtime_of(name) for name in ("libasan.so", "libubsan.so", "libstdc++.so"))
    return {
        **os.environ,
        "LD_PRELOAD": preloaded,
        "EXACTSTATE_KERNELS": str(library),
        # Python and torch keep memory until the end; what they leak is not ours
        "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1:abort_on_error=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        "OMP_NUM_THREADS": "1",
    }


def main(arguments: list[str]) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *(arguments or TESTS)]
    return subprocess.run(command, env=environment(build()), cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
