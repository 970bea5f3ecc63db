"""Compile the Triton kernels for GPUs that are not there: registers, shared memory, spills.

`launches` runs a layer's pass with a recorder in place of the launcher, so that what is compiled is what a GPU would
run, with the same constants. ptxas comes with Triton; nothing here needs a GPU or a driver.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor

TARGETS: dict[str, tuple[str, int | str, int]] = {
    "sm_80": ("cuda", 80, 32), "sm_90": ("cuda", 90, 32), "sm_100": ("cuda", 100, 32), "gfx942": ("hip", "gfx942", 64),
}  # fmt: skip
"""A100, H100, B200, MI300X: backend, architecture, threads of a warp."""
_TYPES = {
    torch.float32: "fp32", torch.float64: "fp64", torch.uint8: "u8", torch.int16: "i16", torch.int32: "i32",
    torch.int64: "i64",
}  # fmt: skip


@dataclass(frozen=True)
class Launch:
    """A kernel and everything that its compilation depends on."""

    kernel: str
    types: tuple[str | None, ...]
    """Of the arguments; None for an argument that is None."""
    constants: tuple[tuple[str, int], ...]
    warps: int


@dataclass(frozen=True)
class Resources:
    """What a compiled kernel needs on one target."""

    kernel: str
    target: str
    registers: int
    """Of a thread."""
    shared: int
    """Bytes of shared memory of a program."""
    spills: int
    """Bytes of memory per thread for registers that did not fit."""
    fused: int
    """Fused multiply-adds in the assembly."""


def launches(width: int, heads: Sequence[int], backend: str = "triton", rows: int = 96) -> list[Launch]:
    """The kernels of one training step and one evaluation of a layer, each once."""
    from exactstate.nn import NFSM
    from exactstate.ops import interface, triton_backend

    found: dict[Launch, None] = {}

    def record(name: str, grid: tuple[int, ...], *arguments: Any, warps: int = 4, **constants: int) -> None:
        if all(grid):
            types = tuple(_type(argument) for argument in arguments)
            found[Launch(name, types, tuple(sorted(constants.items())), warps)] = None

    def zeros(*shape: Any, **options: Any) -> Tensor:
        return torch.zeros(*shape, **options)

    backends = interface._BACKENDS
    usable = interface.Backend(backends[backend].scan, backends[backend].kernels)
    with (
        mock.patch.dict(backends, {backend: usable}),
        mock.patch.object(triton_backend, "_launch", record),
        mock.patch.object(torch, "empty", zeros),  # outputs that nothing fills must be states in range
    ):
        layer = NFSM(width, heads, dictionary=None, backend=backend, generator=torch.Generator().manual_seed(0))
        x = torch.zeros(1, rows, width, requires_grad=True)
        layer(x, seed=0)[0].sum().backward()
        layer.eval()
        with torch.no_grad():
            layer((x[0, :3], torch.zeros(1, rows, dtype=torch.int64)))
        layer.logits(x)
    return list(found)


def compile_launch(launch: Launch, target: str) -> Resources:
    """Compile one kernel for one target; raises whatever Triton or ptxas raises."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from exactstate.ops import triton_kernels

    function = getattr(triton_kernels, launch.kernel)
    names = [name for name in function.arg_names if name not in dict(launch.constants)]
    signature = {name: kind or "constexpr" for name, kind in zip(names, launch.types, strict=True)}
    constants = {name: None for name, kind in signature.items() if kind == "constexpr"} | dict(launch.constants)
    source = ASTSource(function, signature | dict.fromkeys(dict(launch.constants), "constexpr"), constants)
    compiled = triton.compile(
        source, target=GPUTarget(*TARGETS[target]), options={"enable_fp_fusion": False, "num_warps": launch.warps}
    )
    if "amdgcn" in compiled.asm:
        text = compiled.asm["amdgcn"]
        registers, spills = (
            _number(r"\.vgpr_count:\s+(\d+)", text),
            _number(r"\.private_segment_fixed_size:\s+(\d+)", text),
        )
        fused = len(re.findall(r"\bv_(?:pk_)?fmac?_f(?:32|64)", text))
    else:
        usage = _cubin_usage(compiled.asm["cubin"])
        registers = _number(r"REG:(\d+)", usage)
        spills = _number(r"STACK:(\d+)", usage) + _number(r"LOCAL:(\d+)", usage)
        fused = len(re.findall(r"\bfma\.", compiled.asm["ptx"]))
    return Resources(launch.kernel, target, registers, int(compiled.metadata.shared), spills, fused)


def _type(argument: Any) -> str | None:
    if argument is None:
        return None
    if isinstance(argument, Tensor):
        return "*" + _TYPES[argument.dtype]
    return "i32"


def _cubin_usage(cubin: bytes) -> str:
    import triton

    program = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([program, "--dump-resource-usage", file.name], capture_output=True, text=True, check=True)
    return done.stdout


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    if found is None:
        raise ValueError(f"the compiler's output has no {pattern!r}")
    return int(found.group(1))


def main() -> None:
    """A table for the default layer."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks._triton_compile", description=main.__doc__)
    parser.add_argument("--targets", nargs="*", default=list(TARGETS), choices=list(TARGETS))
    parser.add_argument("--kernels", nargs="*", help="all by default")
    parser.add_argument("--once", action="store_true", help="only the first launch of every kernel")
    parser.add_argument("--width", type=int, default=128)
    chosen = parser.parse_args()
    print(f"{'kernel':20} {'target':8} {'registers':>9} {'shared':>7} {'spills':>6} {'fused':>5}")
    done: set[str] = set()
    for launch in launches(chosen.width, (12,) * 16):
        if (chosen.kernels and launch.kernel not in chosen.kernels) or (chosen.once and launch.kernel in done):
            continue
        done.add(launch.kernel)
        for target in chosen.targets:
            used = compile_launch(launch, target)
            print(
                f"{used.kernel:20} {target:8} {used.registers:9} {used.shared:7} {used.spills:6} {used.fused:5}",
                *(f"{name}={value}" for name, value in launch.constants), flush=True,
            )  # fmt: skip


if __name__ == "__main__":
    main()
