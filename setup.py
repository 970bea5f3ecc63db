"""Only what pyproject.toml cannot say: the compiled kernels, which an install may do without."""

from setuptools import Extension, setup

NATIVE = "exactstate/csrc"
KERNELS = (
    "tables",
    "trajectories",
    "argmax_trajectories",
    "index_gains",
    "surrogate",
    "readout",
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

setup(
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
    ]
)
