"""Loads and stores.

PTX ISA, "Data Movement and Conversion Instructions: ld, ld.global.nc, ldu, st, prefetch". All state
spaces and generic addresses, vectors, types narrower than the register. Memory is sequentially
consistent here, so .volatile, .relaxed, .acquire, .release and scopes add nothing; caches do not
exist, so cache operators, eviction priorities and prefetches do nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator.isa import Step, step, unsupported
from lesson.emulator.isa_move import space_in
from lesson.emulator.lanes import Mask, mask_of, scattered
from lesson.emulator.memory import (
    Place,
    generic_place,
    global_place,
    local_place,
    param_place,
    shared_place,
)
from lesson.emulator.operands import Dest, Read, kind_of
from lesson.emulator.ptx import Addr, Imm, Instr, Operand, Reg, Sym, Vec
from lesson.emulator.reach import keep, reached, spot_of
from lesson.emulator.registers import U16, U64, WIDTH, Values, storage

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.operands import FunctionBuilder

Locate = Callable[["Machine", Instr, Values, int, Mask, bool], "Place | None"]
_ORDER = frozenset(
    [
        "weak",
        "relaxed",
        "acquire",
        "release",
        "volatile",
        "mmio",
        "cta",
        "cluster",
        "gpu",
        "sys",
        "nc",
        "unified",
    ]
)
_CACHE = frozenset(["ca", "cg", "cs", "lu", "cv", "wb", "wt"])
_VECTOR = {"v2": 2, "v4": 4, "v8": 8}
_SHIFT = {n: np.int64(n.bit_length() - 1) for n in (1, 2, 4, 8, 16, 32, 64)}


def _is_known(mod: str) -> bool:
    base = mod.partition("::")[0]
    return (
        base in ("L1", "L2", "global", "shared", "local", "const", "param")
        or mod in _ORDER | _CACHE
    )


def parts_of(instr: Instr) -> tuple[str, str, int]:
    """State space (with `::cluster` where written), type and vector length of a load or store."""
    kind, count = kind_of(instr), 1
    for mod in instr.mods:
        if mod in _VECTOR:
            count = _VECTOR[mod]
        elif mod != kind and not _is_known(mod):
            raise unsupported(instr)
    space = space_in(instr)
    return (space + "::cluster" if "shared::cluster" in instr.mods else space), kind, count


def address_of(b: FunctionBuilder, operand: Operand) -> Read:
    """A function from a frame to 64-bit addresses, one a lane or one for all."""
    if not isinstance(operand, Addr):
        raise TypeError("an address must stand in brackets")
    base, offset = operand.base, operand.offset
    if isinstance(base, Sym):
        return b.read(Sym(base.name, base.offset + offset), "u64")
    if isinstance(base, Imm):
        return b.read(Imm(int(base.value) + offset), "u64")
    kind = b.width_of(base) if base.name in b.function.registers else "b64"
    read = b.read(base, kind)
    if kind == "b64":
        if not offset:
            return read
        more = np.uint64(offset & (1 << 64) - 1)
        return lambda R: read(R) + more
    step32 = np.uint32(offset & (1 << 32) - 1)
    return lambda R: (read(R).astype(np.uint32) + step32).astype(U64)


LOCATE: dict[str, Locate] = {
    "global": global_place,
    "const": global_place,
    "shared": lambda m, i, a, n, act, w: shared_place(m, i, a, n, act),
    "shared::cluster": lambda m, i, a, n, act, w: shared_place(m, i, a, n, act, True),
    "local": lambda m, i, a, n, act, w: local_place(m, i, a, n, act),
    "param": lambda m, i, a, n, act, w: param_place(m, i, a, n, act),
    "": generic_place,
}


def observe(m: Machine, instr: Instr, kind: str, place: Place, act: Mask, nbytes: int) -> None:
    """Tell the observers of an access."""
    index = place.index
    if index.size != act.n:
        index = np.broadcast_to(index, act.n)
    for observer in m.observers:
        observer.access(m, instr, kind, place.space, act.idx, index, nbytes)


def by_space(m: Machine, addr: Values, act: Mask) -> list[tuple[Mask, Values]]:
    """Lanes whose generic addresses lie in one window each."""
    window = addr >> np.uint64(32)
    found = []
    for value in np.unique(window):
        here = window == value
        found.append((mask_of(act.idx[here], m.nlanes), addr[here]))
    return found


@step("ld", "ldu")
def build_ld(instr: Instr, b: FunctionBuilder) -> Step:
    """`ld{.space}{.vec}.type d, [a]`."""
    space, kind, count = parts_of(instr)
    target, address = instr.operands[:2]
    is_named = isinstance(address, Addr) and isinstance(address.base, Sym)
    if space == "param" and is_named and address.base.name in b.params:
        return _load_kernel_param(instr, b, kind, count)
    targets = target.items if isinstance(target, Vec) else (target,)
    if len(targets) != count:
        raise unsupported(instr)
    dests = [b.dest(each, kind) for each in targets]
    get, locate, spot = address_of(b, address), LOCATE[space], spot_of(b, address, space)
    size = WIDTH[kind] // 8
    total, shift = size * count, _SHIFT[size]

    def load(m: Machine, R: list, mask: Mask | None) -> None:
        act = m.everyone if mask is None else mask
        known = None if spot is None else reached(m, R, act, spot, total, False)
        if known is not None:
            _loaded(m, R, mask, act, dests, [known.read(size, k * size) for k in range(count)])
            for observer in m.observers:
                observer.access_along(m, instr, "read", known, total)
            return
        addr = m.of(get(R), act)
        place = locate(m, instr, addr, total, act, False)
        if place is None:
            for part, _ in by_space(m, addr, act):
                load(m, R, part)
            return
        view, index = place.buffer.views[size], place.index >> shift
        words = [view[index + k] if k else view[index] for k in range(count)]
        if m.observers:
            observe(m, instr, "read", place, act, total)
        if spot is not None:
            keep(m, R, act, spot, place)
        _loaded(m, R, mask, act, dests, words)

    return load


def _loaded(
    m: Machine, R: list, mask: Mask | None, act: Mask, dests: list[Dest], words: list[Values]
) -> None:
    """Give the registers of a load the words that it found, one a lane or one for all."""
    for (slot, widen), word in zip(dests, words, strict=True):
        values = word.astype(U16) if word.itemsize == 1 else word
        values = values if widen is None else widen(values)
        if values.size == m.nlanes or (values.size == 1 and mask is None):
            R[slot] = values
        else:
            R[slot] = scattered(R[slot], values, act)


def _load_kernel_param(instr: Instr, b: FunctionBuilder, kind: str, count: int) -> Step:
    """A kernel parameter by name: a constant of the launch, so it becomes a move."""
    target, address = instr.operands[:2]
    targets = target.items if isinstance(target, Vec) else (target,)
    if len(targets) != count:
        raise unsupported(instr)
    place = b.params[address.base.name]
    size, dtype = WIDTH[kind] // 8, storage(kind)
    moves = []
    for k, each in enumerate(targets):
        at = place.offset + address.base.offset + address.offset + k * size
        slot = b.filled(
            ("param", at, size), dtype, lambda m, depth, at=at: _param_value(m, instr, at, size)
        )
        moves.append((slot, b.write(each, kind)))

    def move(m: Machine, R: list, mask: Mask | None) -> None:
        for slot, write in moves:
            write(R, R[slot], mask)

    return move


def _param_value(m: Machine, instr: Instr, at: int, size: int) -> Values:
    place = param_place(m, instr, np.array([at & (1 << 20) - 1], np.uint64), size, m.everyone)
    return place.buffer.views[size][place.index >> _SHIFT[size]]


@step("st")
def build_st(instr: Instr, b: FunctionBuilder) -> Step:
    """`st{.space}{.vec}.type [a], b`."""
    if instr.mods[:1] == ("bulk",):
        raise unsupported(instr)
    space, kind, count = parts_of(instr)
    address, source = instr.operands[:2]
    sources = source.items if isinstance(source, Vec) else (source,)
    if len(sources) != count:
        raise unsupported(instr)
    reads = [b.read(each, kind) for each in sources]
    get, locate, spot = address_of(b, address), LOCATE[space], spot_of(b, address, space)
    size = WIDTH[kind] // 8
    total, shift = size * count, _SHIFT[size]

    def store(m: Machine, R: list, mask: Mask | None) -> None:
        act = m.everyone if mask is None else mask
        known = None if spot is None else reached(m, R, act, spot, total, True)
        if known is not None:
            for k, read in enumerate(reads):
                known.write(size, k * size, m.of(read(R), act), total)
            m.version += 1
            for observer in m.observers:
                observer.access_along(m, instr, "write", known, total)
            return
        addr = m.of(get(R), act)
        place = locate(m, instr, addr, total, act, True)
        if place is None:
            for part, _ in by_space(m, addr, act):
                store(m, R, part)
            return
        view, index = place.buffer.views[size], place.index >> shift
        for k, read in enumerate(reads):
            values = m.of(read(R), act)
            if index.size == 1:
                values = values[-1:]
            view[index + k if k else index] = values
        m.version += 1
        if m.observers:
            observe(m, instr, "write", place, act, total)
        if spot is not None:
            keep(m, R, act, spot, place)

    return store


@step("prefetch", "prefetchu")
def build_prefetch(instr: Instr, b: FunctionBuilder) -> Step:
    """Nothing: there is no cache to fill, of data or of tensor maps."""
    if isinstance(instr.operands[0], Addr) and isinstance(instr.operands[0].base, Reg):
        b.register(instr.operands[0].base)
    return lambda m, R, mask: None
