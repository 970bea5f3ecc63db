"""Only what pyproject.toml cannot say: the compiled kernels, which an install may do without."""

from setuptools import Extension, setup

SOURCES = ["detent/native/run.cpp", "detent/native/scan.cpp"]

setup(
    ext_modules=[
        Extension(
            "detent.native._kernels",
            sources=SOURCES,
            depends=["detent/native/parallel.hpp"],
            language="c++",
            # no -ffast-math, no contraction: the same bits on every machine
            extra_compile_args=["-std=c++17", "-O3", "-pthread", "-fno-math-errno", "-ffp-contract=off"],
            extra_link_args=["-pthread"],
            optional=True,
        )
    ]
)
