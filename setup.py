"""Only what pyproject.toml cannot say: the compiled kernels, which an install may do without.

They are a plain C library that `exactstate/native.py` loads through ctypes, without anything of the interpreter: one
file name and one wheel, `py3-none-PLATFORM`, serve every Python.
"""

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

NATIVE = "exactstate/csrc"
KERNELS = (
    "tables",
    "trajectories",
    "argmax_trajectories",
    "index_gains",
    "surrogate",
    "readout",
    "step",
    "soft",
    "repeated_rows",
)
SOURCES = [
    f"{NATIVE}/{name}.cpp"
    for name in ("run", "interpret", "text", "prefix_tree", "state_merging", "partition", *KERNELS)
]
HEADERS = [
    f"{NATIVE}/{name}.hpp"
    for name in (
        *("thread_pool", "parallel", "lanes", "gumbel", "logits", "gradient_products", "screen", "segments"),
        *("program", "decode", "registers", "lookback", "walk", "fold"),
    )
]


class BuildLibrary(build_ext):
    def get_ext_filename(self, fullname: str) -> str:
        """Without the suffix of extension modules, which names the interpreter."""
        return fullname.replace(".", "/") + ".so"


class PlatformWheel(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


setup(
    cmdclass={"build_ext": BuildLibrary, "bdist_wheel": PlatformWheel},
    ext_modules=[
        Extension(
            "exactstate._kernels",
            sources=SOURCES,
            depends=HEADERS,
            language="c++",
            # no -ffast-math, no contraction: the same bits on every machine; -g0 makes a wheel less than half as large
            extra_compile_args=[
                *("-std=c++17", "-O3", "-g0", "-pthread", "-fno-math-errno", "-ffp-contract=off", "-Wno-psabi")
            ],
            extra_link_args=["-pthread"],
            optional=True,
        )
    ],
)
