"""Moving elements: reshapes, slices, paddings, diagonals, blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzzing.draws import ANY, NUMBERS, REALS, Call, Draw, T
from fuzzing.table import add


def _ints(values: Any, dtype: str = "int32") -> T:
    return T(np.array(values, dtype))


def _either(d: Draw, values: Any) -> Any:
    """Integers as a tensor or a Python list."""
    return _ints(values) if d.chance(30) else values


def _reshape(d: Draw) -> Call:
    shape = list(d.shape())
    new = [shape[i] for i in d.permutation(len(shape))]
    if d.chance(30):
        new = [int(np.prod(shape))]
    if new and d.chance(40):
        new[d.below(len(new))] = -1
    if d.invalid():
        new = [*new, d.one(2, -1, -2)]
    return d.call(d.tensor(d.one(*ANY), shape), _either(d, new))


add("reshape", _reshape)


def _transpose(d: Draw) -> Call:
    shape = d.shape()
    perm = d.permutation(len(shape)) if d.chance(80) else list(range(len(shape)))
    if d.chance(12):
        perm = d.one(perm[1:], [*perm, len(perm)], [0, *perm], [p + 1 for p in perm])
    more = {"conjugate": True} if d.chance(20) else {}
    return d.call(d.tensor(d.one(*ANY), shape), perm if d.chance(80) else None, **more)


add("transpose", _transpose, calls=45)


def _expand(d: Draw) -> Call:
    shape = d.shape()
    return d.call(d.tensor(d.one(*ANY), shape), d.axis(len(shape) + 1))


add("expand_dims", _expand)


def _squeeze(d: Draw) -> Call:
    shape = tuple([1 if d.chance(50) else n for n in d.shape()])
    axes = [i for i, n in enumerate(shape) if n == 1 and d.chance(60)]
    if shape and d.invalid():
        axes.append(d.axis(len(shape)))
    return d.call(d.tensor(d.one(*ANY), shape), axes if d.chance(60) else None)


add("squeeze", _squeeze)


def _tile(d: Draw) -> Call:
    shape = d.shape()
    multiples = [d.between(0, 3) for _ in shape]
    if d.invalid():
        multiples = d.one([*multiples, 1], [-1 for _ in multiples])
    return d.call(d.tensor(d.one(*ANY), shape), _either(d, multiples))


add("tile", _tile)


def _pad(d: Draw) -> Call:
    shape = d.shape(0, 3)
    mode = d.one("CONSTANT", "CONSTANT", "REFLECT", "SYMMETRIC")
    pads = [[d.between(0, 2), d.between(0, 2)] for _ in shape]
    if d.invalid() and pads:
        pads = d.one([*pads, [0, 0]], [[-1, 0], *pads[1:]], [[9, 0], *pads[1:]])
    more = {"constant_values": 3} if mode == "CONSTANT" and d.chance(30) else {}
    pads_given = _either(d, pads if pads else np.zeros((0, 2), np.int32))
    return d.call(d.tensor(d.one(*NUMBERS), shape), pads_given, mode, **more)


add("pad", _pad, calls=45)


def _reverse(d: Draw) -> Call:
    shape = d.shape()
    axes = [d.one(a, a - len(shape)) for a in range(len(shape)) if d.chance(50)]
    if d.invalid():
        axes = [*axes, d.one(len(shape), *axes)]
    return d.call(d.tensor(d.one(*ANY), shape), axes)


add("reverse", _reverse)


def _reverse_sequence(d: Draw) -> Call:
    shape = d.shape(2)
    seq, batch = d.one((0, 1), (1, 0))
    lengths = [d.between(0, shape[seq]) for _ in range(shape[batch])]
    if lengths and d.invalid():
        lengths[0] = d.one(-1, shape[seq] + 1)
    return d.call(d.tensor(d.one(*ANY), shape), _ints(lengths), seq_axis=seq, batch_axis=batch)


add("reverse_sequence", _reverse_sequence)


def _slice(d: Draw) -> Call:
    shape = d.shape()
    begin: Any = [d.between(0, n) for n in shape]
    size = [d.one(-1, d.between(0, n - begin[i])) for i, n in enumerate(shape)]
    if shape and d.invalid():
        begin[0], size[0] = d.one((-1, 1), (0, shape[0] + 1), (shape[0] + 1, -1), (0, -2))
    if not shape:
        begin = size = np.zeros(0, "int32")
    return d.call(d.tensor(d.one(*ANY), shape), _either(d, begin), _either(d, size))


add("slice", _slice)


def _strided(d: Draw) -> Call:
    shape = d.shape(1)
    rank = d.between(1, len(shape))
    begin = [d.between(-n - 1, n + 1) for n in shape[:rank]]
    end = [d.between(-n - 1, n + 1) for n in shape[:rank]]
    strides = [d.one(1, 1, 2, -1, -2, 0 if d.invalid() else 1) for _ in range(rank)]
    kinds = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    masks: dict[str, Any] = {k: d.below(1 << rank) for k in kinds if d.chance(15)}
    if "ellipsis_mask" in masks:
        masks["ellipsis_mask"] = 1 << d.below(rank)
    return d.call(d.tensor(d.one(*ANY), shape), begin, end, strides, **masks)


add("strided_slice", _strided, calls=60)


def _roll(d: Draw) -> Call:
    shape = d.shape(1)
    count = d.between(1, 2)
    shifts, axes = (
        [d.between(-5, 5) for _ in range(count)],
        [d.axis(len(shape)) for _ in range(count)],
    )
    return d.call(d.tensor(d.one(*ANY), shape), shifts, axes)


add("roll", _roll)


def _broadcast_to(d: Draw) -> Call:
    small, whole = d.broadcast()
    whole = d.one(whole, (*d.shape(0, 1), *whole))
    return d.call(d.tensor(d.one(*ANY), small), _either(d, list(whole)))


add("broadcast_to", _broadcast_to)


# -- matrices ------------------------------------------------------------------------------------

add("diag", lambda d: d.call(d.tensor(d.one(*NUMBERS), d.shape(0, 2))))
add("matrix_diag", lambda d: d.call(d.tensor(d.one(*ANY), d.shape(0, 2))))


def _square(d: Draw, types: Any = ANY) -> T:
    n = d.size()
    lead = d.shape(0, 1)
    return d.tensor(d.one(*types), (*lead, n, n + 1 if d.invalid() else n))


add("diag_part", lambda d: d.call(d.tensor(d.one(*REALS), d.shape(0, 2) * 2)))
add("matrix_diag_part", lambda d: d.call(d.tensor(d.one(*ANY), d.shape(1, 3))))
add("matrix_transpose", lambda d: d.call(d.tensor(d.one(*ANY), d.shape(1, 3))))
add("trace", lambda d: d.call(d.tensor(d.one(*NUMBERS), d.shape(1, 3))))


def _band(d: Draw) -> Call:
    limits = [d.between(-1, 3) for _ in range(2)]
    if d.invalid():
        limits[0] = 9
    return d.call(d.tensor(d.one(*ANY), d.shape(1 if d.invalid() else 2, 3)), *limits)


add("matrix_band_part", _band)


def _set_diag(d: Draw) -> Call:
    shape = d.shape(2, 3)
    count = min(shape[-2:]) + d.invalid()
    dtype = d.one(*ANY)
    return d.call(d.tensor(dtype, shape), d.tensor(dtype, (*shape[:-2], count)))


add("matrix_set_diag", _set_diag)


# -- blocks --------------------------------------------------------------------------------------


def _blocks(d: Draw) -> tuple[list[int], list[list[int]]]:
    count = d.between(1, 2)
    block = [d.between(1, 3) for _ in range(count)]
    pads = [[d.between(0, 2), d.between(0, 2)] for _ in range(count)]
    if d.chance(20):
        broken = d.below(6)
        if broken < 2:
            block[0] = d.one(0, -1, -2)
        elif broken == 2:
            pads[0][0] = -1
        elif broken == 3:
            block.append(2)
        elif broken == 4:
            pads.append([0, 0])
        else:
            block = []
    return block, pads


def _block(block: list[int]) -> np.ndarray[Any, Any]:
    return np.array(block, "int32")


def _space_to_batch_nd(d: Draw) -> Call:
    block, pads = _blocks(d)
    sizes = []
    for i in range(max(1, min(len(block), len(pads)))):
        b = block[i] if i < len(block) else 2
        wanted = b * d.between(0, 3) - sum(pads[i])
        sizes.append(max(0, wanted) if b > 0 else 4)
    shape = (d.size(2), *sizes, *d.shape(0, 1))
    return d.call(d.tensor(d.one(*REALS), shape), _block(block), pads)


add("space_to_batch_nd", _space_to_batch_nd, calls=60)


def _batch_to_space_nd(d: Draw) -> Call:
    block, crops = _blocks(d)
    batch = abs(int(np.prod(block))) * d.between(0, 2) if block else 2
    batch += d.invalid()
    sizes = [d.between(0, 4) for _ in range(max(1, min(len(block), len(crops))))]
    shape = (batch, *sizes, *d.shape(0, 1))
    return d.call(d.tensor(d.one(*REALS), shape), _block(block), crops)


add("batch_to_space_nd", _batch_to_space_nd, calls=60)


def _space_to_batch(d: Draw) -> Call:
    block = d.one(2, 3, 2, 1, 0, -2) if d.chance(30) else 2
    pads = [[d.between(0, 2), d.between(0, 2)] for _ in range(2)]
    sizes = [max(0, abs(block) * d.between(1, 3) - sum(p)) + d.invalid() for p in pads]
    shape = (d.size(2), *sizes, d.size(2))
    return d.call(d.tensor(d.one(*REALS), shape), pads, block_size=block)


def _batch_to_space(d: Draw) -> Call:
    block = d.one(2, 3, 2, 1, 0, -2) if d.chance(30) else 2
    crops = [[d.between(0, 1), d.between(0, 1)] for _ in range(2)]
    shape = (block * block * d.between(0, 2) + d.invalid(), d.size(3), d.size(3), d.size(2))
    return d.call(d.tensor(d.one(*REALS), shape), crops, block_size=block)


add("space_to_batch", _space_to_batch)
add("batch_to_space", _batch_to_space)


def _depth(d: Draw, to_depth: bool) -> Call:
    block = d.one(2, 2, 3, 1, 0, -1) if d.chance(30) else 2
    size = abs(block) or 1
    if to_depth:
        shape = (d.size(2), size * d.size(2) + d.invalid(), size * d.size(2), d.size(3))
    else:
        shape = (d.size(2), d.size(3), d.size(3), size * size * d.size(2) + d.invalid())
    return d.call(d.tensor(d.one("float32", "float32", "int32", "uint8"), shape), block)


add("space_to_depth", lambda d: _depth(d, True))
add("depth_to_space", lambda d: _depth(d, False))


def _required_paddings(d: Draw) -> Call:
    sizes = [d.between(0, 7) for _ in range(2)]
    blocks = [d.between(1, 3) for _ in range(2)]
    return d.call(sizes, blocks)


add("required_space_to_batch_paddings", _required_paddings)


def _patches(d: Draw) -> Call:
    shape = (d.size(2), d.size(6), d.size(6), d.size(2))
    sizes = [1, d.between(1, 3), d.between(1, 3), 1]
    strides, rates = (
        [1, d.between(1, 3), d.between(1, 3), 1],
        [1, d.between(1, 2), d.between(1, 2), 1],
    )
    if d.invalid():
        strides[1] = d.one(0, -1)
    return d.call(d.tensor(d.one(*REALS), shape), sizes, strides, rates, d.one("VALID", "SAME"))


add("image.extract_image_patches", _patches)
