"""The device code of the backend `triton`; `exactstate.ops.triton_backend` calls it.

    N  local rows     m  width     r  heads     d  indices of a head     S  the sum of the ds     E  of the d * ds

Column s is the column of one index of one head: `columns` (S 3) holds its d, the first index of its head, and its first
entry among the E logits. `sizes` (r 3) holds the d, the first index and the first entry of every head.

Every sum of logits and noise is written operation by operation, in the order of `reference`; the launcher compiles with
`enable_fp_fusion=False`, so no multiplication is fused with an addition and the tables have the CPU's bits.
"""

import triton
import triton.language as tl

# -- noise from counters, operation by operation that of exactstate.ops.gumbel


@triton.jit
def _scramble(z):
    """The finalizer of splitmix64 on 64-bit patterns."""
    z = z + tl.full(z.shape, 0x9E3779B97F4A7C15, tl.uint64)
    z = (z ^ (z >> 30)) * tl.full(z.shape, 0xBF58476D1CE4E5B9, tl.uint64)
    z = (z ^ (z >> 27)) * tl.full(z.shape, 0x94D049BB133111EB, tl.uint64)
    return z ^ (z >> 31)


@triton.jit
def _natural_log(x):
    """The logarithm of positive normal float32 numbers."""
    bits = x.to(tl.int32, bitcast=True)
    k = (bits - 0x3F3504F3) >> 23
    f = (bits - (k << 23)).to(tl.float32, bitcast=True) - 1.0
    square = f * f
    fourth = square * square
    a, b = f * -2.4999993993e-1 + 3.3333331174e-1, f * -1.6668057665e-1 + 2.0000714765e-1
    c, d = f * -1.2420140846e-1 + 1.4249322787e-1, f * -1.1514610310e-1 + 1.1676998740e-1
    p = ((a + b * square) + (c + d * square) * fourth) + (fourth * fourth) * 7.0376836292e-2
    return (f - 0.5 * square + square * f * p) + k.to(tl.float32) * 0.69314718056


@triton.jit
def _noise_key(seed, sequence, step):
    """Two words of 32 bits per row, from the seed (a pointer), the number of the sequence and the step."""
    first = _scramble(tl.load(seed).to(tl.uint64, bitcast=True) + tl.zeros(sequence.shape, tl.uint64))
    second = _scramble(first + sequence.to(tl.uint64, bitcast=True))
    key = _scramble(second + step.to(tl.uint64, bitcast=True))
    return key.to(tl.uint32), (key >> 32).to(tl.uint32)


@triton.jit
def _gumbel(low, high, entry):
    """Standard Gumbel noise for the words of keys and the numbers of entries, broadcast."""
    x = low ^ (entry.to(tl.uint32) * tl.full(entry.shape, 0x9E3779B9, tl.uint32))
    x = x ^ (x >> 16)
    x = x * tl.full(x.shape, 0x7FEB352D, tl.uint32)
    x = x ^ high
    x = x ^ (x >> 15)
    x = x * tl.full(x.shape, 0x846CA68B, tl.uint32)
    x = x ^ (x >> 16)
    uniform = ((x >> 9).to(tl.float32) + 0.5) * 1.1920928955078125e-07  # 2^-23
    return -_natural_log(-_natural_log(uniform))


# -- logits and tables


@triton.jit
def logits(
    input, weight_t, bias, out, R, m, E, BLOCK_N: tl.constexpr, BLOCK_E: tl.constexpr
):  # fmt: skip
    """R m, m E, E -> R E: bias + x[0] w[0] + x[1] w[1] + ..., in that order."""
    n = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    e = tl.program_id(1) * BLOCK_E + tl.arange(0, BLOCK_E)
    here = (n < R)[:, None] & (e < E)[None, :]
    total = tl.load(bias + e, e < E, 0.0)[None, :] + tl.zeros((BLOCK_N, BLOCK_E), bias.dtype.element_ty)
    for i in range(m):
        x = tl.load(input + n * m + i, n < R, 0.0)
        w = tl.load(weight_t + i * E + e, e < E, 0.0)
        total += x[:, None] * w[None, :]
    tl.store(out + n[:, None] * E + e[None, :], total, here)


@triton.jit
def tables(
    input, weight_t, bias, row_logits, index, rows, columns, seed, scale, sequences, steps, out, bad, N, m, S, E,
    LARGEST: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_J: tl.constexpr, ORDERED: tl.constexpr,
):  # fmt: skip
    """The arg max of every column of every local row, N S: logits, noise and arg max without an array of logits.

    `bad` receives the smallest local row whose logits are not finite. Given are `input`, or `row_logits` and `index`.
    """
    n = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    s = tl.program_id(1) * BLOCK_S + tl.arange(0, BLOCK_S)
    row = tl.load(rows + n, n < N, 0)
    size = tl.load(columns + 3 * s, s < S, 0)
    first_entry = tl.load(columns + 3 * s + 2, s < S, 0)
    if index is not None:
        row = tl.load(index + row, n < N, 0)
    if seed is not None:
        factor = tl.load(scale)
        low, high = _noise_key(seed, tl.load(sequences + n, n < N, 0), tl.load(steps + n, n < N, 0))
    best = tl.full((BLOCK_N, BLOCK_S), float("-inf"), scale.dtype.element_ty)
    best_j = tl.zeros((BLOCK_N, BLOCK_S), tl.int32)
    finite = tl.full((BLOCK_N,), 1, tl.int32)
    for j0 in range(0, LARGEST, BLOCK_J):
        j = j0 + tl.arange(0, BLOCK_J)
        e = first_entry[:, None] + j[None, :]
        used = j[None, :] < size[:, None]
        here = (n < N)[:, None, None] & used[None, :, :]
        if index is None:
            start = tl.load(bias + e, used, 0.0)
            if ORDERED:
                total = start[None, :, :] + tl.zeros((BLOCK_N, BLOCK_S, BLOCK_J), scale.dtype.element_ty)
                for i in range(m):
                    x = tl.load(input + row * m + i, n < N, 0.0)
                    w = tl.load(weight_t + i * E + e, used, 0.0)
                    total += x[:, None, None] * w[None, :, :]
            else:
                # sixteen products at a time, fused and in the order of the hardware
                flat_e, flat_used = tl.reshape(e, (BLOCK_S * BLOCK_J,)), tl.reshape(used, (BLOCK_S * BLOCK_J,))
                flat = tl.zeros((BLOCK_N, BLOCK_S * BLOCK_J), scale.dtype.element_ty)
                for i0 in range(0, m, 16):
                    i = i0 + tl.arange(0, 16)
                    x = tl.load(input + row[:, None] * m + i[None, :], (n < N)[:, None] & (i < m)[None, :], 0.0)
                    w = tl.load(weight_t + i[:, None] * E + flat_e[None, :], (i < m)[:, None] & flat_used[None, :], 0.0)
                    flat = tl.dot(x, w, flat, input_precision="ieee", out_dtype=flat.dtype)
                total = tl.reshape(flat, (BLOCK_N, BLOCK_S, BLOCK_J)) + start[None, :, :]
        else:
            total = tl.load(row_logits + row[:, None, None] * E + e[None, :, :], here, 0.0)
        usable = here & (total - total == 0.0)  # neither NaN nor infinite
        finite = finite & (1 - tl.max(tl.max((usable != here).to(tl.int32), 2), 1))
        if seed is not None:
            noise = _gumbel(low[:, None, None], high[:, None, None], e[None, :, :])
            total = total * factor + noise.to(total.dtype)
        total = tl.where(usable, total, float("-inf"))
        value, at = tl.max(total, 2, return_indices=True)
        better = value > best
        best = tl.where(better, value, best)
        best_j = tl.where(better, j0 + at, best_j)
    stored = (n < N)[:, None] & (s < S)[None, :]
    tl.store(out + n[:, None] * S + s[None, :], best_j.to(out.dtype.element_ty), stored)
    tl.atomic_min(bad + tl.zeros_like(n), n, (n < N) & (finite == 0))


# -- scans over blocks of rows: every lane walks alone


@triton.jit
def walk(
    tables, table_rows, lane_index, starts, out, out_rows, firsts, counts, S, LANES,
    BLOCK: tl.constexpr, EVERY: tl.constexpr,
):  # fmt: skip
    """From `starts` (blocks x LANES), walk every lane through the tables of its block of rows.

    A lane is one index that moves: LANES are the heads for states, all S indices for composites; `lane_index` is where
    a lane's head begins. EVERY stores the index after every row (`out` by row), otherwise after the last (`out` by
    block).
    """
    block = tl.program_id(0).to(tl.int64)
    lane = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    moves = lane < LANES
    begin = tl.load(lane_index + lane, moves, 0)
    at = tl.load(starts + block * LANES + lane, moves, 0).to(tl.int32)
    first, count = tl.load(firsts + block), tl.load(counts + block)
    for t in range(count):
        table_row = first + t
        if table_rows is not None:
            table_row = tl.load(table_rows + first + t)
        at = tl.load(tables + table_row * S + begin + at, moves, 0).to(tl.int32)
        if EVERY:
            out_row = first + t
            if out_rows is not None:
                out_row = tl.load(out_rows + first + t)
            tl.store(out + out_row * LANES + lane, at.to(out.dtype.element_ty), moves)
    if not EVERY:
        tl.store(out + block * LANES + lane, at.to(out.dtype.element_ty), moves)


@triton.jit
def adjoint(
    tables, lane_index, gains, ahead_of, before, firsts, counts, S,
    BLOCK: tl.constexpr, OF_BLOCKS: tl.constexpr, EVERY: tl.constexpr,
):  # fmt: skip
    """The adjoint recurrence backward through one block of rows, from `ahead_of` (blocks x S) behind its last row.

    Rows: lambda = gains + ahead, and ahead = lambda[table]; EVERY stores lambda in place of the gains.
    OF_BLOCKS, whose gains are already those before a block: ahead = gains + ahead[table]; EVERY stores what was ahead.
    `before` receives what is ahead before the first row.
    """
    block = tl.program_id(0).to(tl.int64)
    s = tl.arange(0, BLOCK)
    begin = tl.load(lane_index + s, s < S, 0)
    ahead = tl.load(ahead_of + block * S + s, s < S, 0.0)
    first, count = tl.load(firsts + block), tl.load(counts + block)
    for t in range(count):
        row = first + count - 1 - t
        place = begin + tl.load(tables + row * S + s, s < S, 0).to(tl.int32)
        gain = tl.load(gains + row * S + s, s < S, 0.0)
        if OF_BLOCKS:
            if EVERY:
                tl.store(gains + row * S + s, ahead, s < S)
            ahead = gain + tl.gather(ahead, place, 0)
        else:
            ahead = gain + ahead
            if EVERY:
                tl.store(gains + row * S + s, ahead, s < S)
            ahead = tl.gather(ahead, place, 0)
    tl.store(before + block * S + s, ahead, s < S)


# -- the straight-through gradient of the used columns


@triton.jit
def surrogate(
    input, weight_t, bias, row_logits, index, rows, sizes, seed, scale, sequences, steps, used_columns, lam, N, m, S, E,
    r, BLOCK_N: tl.constexpr, BLOCK_J: tl.constexpr,
):  # fmt: skip
    """Turn lambda (N S) into p (lambda - <p, lambda>) / temperature in place, p the softmax of the used column."""
    n = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    h = tl.program_id(1)
    size, first_index, first_entry = tl.load(sizes + 3 * h), tl.load(sizes + 3 * h + 1), tl.load(sizes + 3 * h + 2)
    j = tl.arange(0, BLOCK_J)
    here = (n < N)[:, None] & (j < size)[None, :]
    row = tl.load(rows + n, n < N, 0)
    e = first_entry + (tl.load(used_columns + n * r + h, n < N, 0) * size)[:, None] + j[None, :]
    if index is None:
        total = tl.load(bias + e, here, 0.0)
        for i in range(m):
            total += tl.load(input + row * m + i, n < N, 0.0)[:, None] * tl.load(weight_t + i * E + e, here, 0.0)
    else:
        total = tl.load(row_logits + tl.load(index + row, n < N, 0)[:, None] * E + e, here, 0.0)
    factor = tl.load(scale)
    total = total * factor
    if seed is not None:
        low, high = _noise_key(seed, tl.load(sequences + n, n < N, 0), tl.load(steps + n, n < N, 0))
        total += _gumbel(low[:, None], high[:, None], e).to(total.dtype)
    total = tl.where((j < size)[None, :], total, float("-inf"))
    p = tl.exp(total - tl.max(total, 1)[:, None])
    p = p / tl.sum(p, 1)[:, None]
    places = lam + n[:, None] * S + first_index + j[None, :]
    value = tl.load(places, here, 0.0)
    g = p * (value - tl.sum(p * value, 1)[:, None]) * factor
    tl.store(places, g, here)


@triton.jit
def grad_weight(
    input, rows, order, bounds, columns, gradient, grad_weight, grad_bias, m, S, N,
    BLOCK_N: tl.constexpr, BLOCK_J: tl.constexpr, BLOCK_M: tl.constexpr,
):  # fmt: skip
    """Add the outer products of gradient and input over the rows that used column s, in the order of the rows.

    `order` (r N) lists the local rows of every head by used column; those of column s stand at bounds[s] to
    bounds[s + 1].
    """
    s = tl.program_id(0)
    i = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    j = tl.program_id(2) * BLOCK_J + tl.arange(0, BLOCK_J)
    size, first_index, first_entry = (
        tl.load(columns + 3 * s),
        tl.load(columns + 3 * s + 1),
        tl.load(columns + 3 * s + 2),
    )
    begin, end = tl.load(bounds + s), tl.load(bounds + s + 1)
    total = tl.zeros((BLOCK_J, BLOCK_M), gradient.dtype.element_ty)
    total_bias = tl.zeros((BLOCK_J,), gradient.dtype.element_ty)
    for at in range(begin, end, BLOCK_N):
        place = at + tl.arange(0, BLOCK_N)
        n = tl.load(order + place, place < end, 0)
        row = tl.load(rows + n, place < end, 0)
        g = tl.load(
            gradient + n[None, :] * S + first_index + j[:, None], (place < end)[None, :] & (j < size)[:, None], 0.0
        )
        x = tl.load(input + row[:, None] * m + i[None, :], (place < end)[:, None] & (i < m)[None, :], 0.0)
        total = tl.dot(g, x, total, input_precision="ieee", out_dtype=gradient.dtype.element_ty)
        total_bias += tl.sum(g, 1)
    places = grad_weight + (first_entry + j)[:, None].to(tl.int64) * m + i[None, :]
    here = (j < size)[:, None] & (i < m)[None, :]
    tl.store(places, tl.load(places, here, 0.0) + total, here)
    if tl.program_id(1) == 0:
        bias_places = grad_bias + first_entry + j
        tl.store(bias_places, tl.load(bias_places, j < size, 0.0) + total_bias, j < size)


@triton.jit
def grad_input(
    weight, rows, sizes, used_columns, gradient, grad_input, N, m, S, r,
    BLOCK_N: tl.constexpr, BLOCK_M: tl.constexpr,
):  # fmt: skip
    """Add to every input row its gradients times the weights of the used columns, head by head."""
    n = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    i = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    here = (n < N)[:, None] & (i < m)[None, :]
    row = tl.load(rows + n, n < N, 0)
    places = grad_input + row[:, None] * m + i[None, :]
    total = tl.load(places, here, 0.0)
    for h in range(r):
        size, first_index = tl.load(sizes + 3 * h), tl.load(sizes + 3 * h + 1)
        e = tl.load(sizes + 3 * h + 2) + tl.load(used_columns + n * r + h, n < N, 0) * size
        for j in range(size):
            g = tl.load(gradient + n * S + first_index + j, n < N, 0.0)
            total += g[:, None] * tl.load(weight + (e + j)[:, None] * m + i[None, :], here, 0.0)
    tl.store(places, total, here)


# -- the read-out


@triton.jit
def project_values(
    values, weight, sizes, owner_head, out, S, v, m, r, BLOCK_S: tl.constexpr, BLOCK_M: tl.constexpr
):  # fmt: skip
    """S v, m (r v) -> S m: 0 + v[0] w[0] + v[1] w[1] + ..., with the weight's columns of the index's own head."""
    s = tl.program_id(0) * BLOCK_S + tl.arange(0, BLOCK_S)
    c = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    here = (s < S)[:, None] & (c < m)[None, :]
    column = tl.load(owner_head + s, s < S, 0) * v
    total = tl.zeros((BLOCK_S, BLOCK_M), values.dtype.element_ty)
    for i in range(v):
        value = tl.load(values + s * v + i, s < S, 0.0)
        total += value[:, None] * tl.load(weight + c[None, :] * (r * v) + (column + i)[:, None], here, 0.0)
    tl.store(out + s[:, None] * m + c[None, :], total, here)


@triton.jit
def read_out(
    vectors, bias, states, sizes, out, N, m, r, BLOCK_N: tl.constexpr, BLOCK_M: tl.constexpr
):  # fmt: skip
    """S m, m, N r -> N m: the bias plus the vectors of the indices, head by head."""
    n = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    i = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    here = (n < N)[:, None] & (i < m)[None, :]
    total = tl.load(bias + i, i < m, 0.0)[None, :] + tl.zeros((BLOCK_N, BLOCK_M), vectors.dtype.element_ty)
    for h in range(r):
        s = tl.load(sizes + 3 * h + 1) + tl.load(states + n * r + h, n < N, 0).to(tl.int32)
        total += tl.load(vectors + s[:, None] * m + i[None, :], here, 0.0)
    tl.store(out + n[:, None] * m + i[None, :], total, here)


@triton.jit
def read_out_backward(
    output_grad, order, bounds, out, m, BLOCK_N: tl.constexpr, BLOCK_M: tl.constexpr
):  # fmt: skip
    """N m -> S m: the sum over the rows that read index s, in the order of the rows; see `grad_weight`."""
    s = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    begin, end = tl.load(bounds + s), tl.load(bounds + s + 1)
    total = tl.zeros((BLOCK_M,), output_grad.dtype.element_ty)
    for at in range(begin, end, BLOCK_N):
        place = at + tl.arange(0, BLOCK_N)
        n = tl.load(order + place, place < end, 0)
        grad = tl.load(output_grad + n[:, None] * m + i[None, :], (place < end)[:, None] & (i < m)[None, :], 0.0)
        total += tl.sum(grad, 0)
    tl.store(out + s * m + i, total, i < m)
