"""Questions that the recordings of threads together leave open, as small PTX modules.

Each case has the form of an entry of `sync.npz`, so what a GPU answers can be replayed by
`python -m tests.conformance` like any other recording. Asked are: where the fields of an mbarrier
lie in its 64-bit word, which words and operands fault, and whether a fault is seen that no thread
waits for; atomics on vectors; named barriers with odd numbers, and counts that do not fit the
threads. Runs nothing itself: see `record_sync_edges`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

HEAD = """.version 8.1
.target sm_90
.address_size 64
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 po)
{
  .reg .pred %p<4>; .reg .b16 %h<20>; .reg .b32 %r<24>; .reg .b64 %l<16>, %pa, %pb, %po;
  .shared .align 16 .b64 bar[2];
  ld.param.u64 %pa, [pa]; cvta.to.global.u64 %pa, %pa;
  ld.param.u64 %pb, [pb]; cvta.to.global.u64 %pb, %pb;
  ld.param.u64 %po, [po]; cvta.to.global.u64 %po, %po;
  mov.u32 %r0, %tid.x;
"""
TAIL = "  ret;\n}\n"


@dataclass(frozen=True)
class Question:
    """A case as `sync.npz` has it."""

    set: str
    name: str
    module: str
    out: tuple[str, int]
    inputs: list[np.ndarray] = field(default_factory=list)
    block: int = 1
    notes: dict[str, object] = field(default_factory=dict)
    mask: np.ndarray | None = None
    """The bits of the output that tell anything; None: all of them."""


# -------------------------------------------------------------------------------------- mbarrier
AT = ".shared::cta.b64"
OPERATIONS = {
    "word": "st.volatile.shared.b64 [bar], %l1;",
    "init": f"mbarrier.init{AT} [bar], %r1;",
    "inval": f"mbarrier.inval{AT} [bar];",
    "arrive": f"mbarrier.arrive{AT} %l2, [bar], %r1;",
    "arrive.noComplete": f"mbarrier.arrive.noComplete{AT} %l2, [bar], %r1;",
    "arrive_drop": f"mbarrier.arrive_drop{AT} %l2, [bar], %r1;",
    "arrive.expect_tx": f"mbarrier.arrive.expect_tx{AT} %l2, [bar], %r1;",
    "arrive_drop.expect_tx": f"mbarrier.arrive_drop.expect_tx{AT} %l2, [bar], %r1;",
    "expect_tx": f"mbarrier.expect_tx.relaxed.cta{AT} [bar], %r1;",
    "complete_tx": f"mbarrier.complete_tx.relaxed.cta{AT} [bar], %r1;",
    "test_wait": f"mbarrier.test_wait{AT} %p1, [bar], %l1; selp.b64 %l2, 1, 0, %p1;",
    "test_wait.parity": f"mbarrier.test_wait.parity{AT} %p1, [bar], %r1; selp.b64 %l2, 1, 0, %p1;",
    "pending_count": "mbarrier.pending_count.b64 %r2, %l1; cvt.u64.u32 %l2, %r2;",
}
PROGRAMS = """
counts 1 to 3            | init 1; init 2; init 3; init 32; init 1048575
counts that do not fit   | init 0; init 1048576; init 1048581; init 4294967295
bytes up                 | init 5; expect_tx 1; expect_tx 1; expect_tx 74565; expect_tx 973998
bytes down               | init 5; complete_tx 1; complete_tx 1; complete_tx 74565
tokens                   | init 5; arrive 1; arrive 2; arrive.noComplete 1; arrive.expect_tx 48
drops                    | init 5; arrive_drop 1; arrive_drop.expect_tx 16; arrive 1; arrive 1
drop the last            | init 1; arrive_drop 1; test_wait.parity 0; arrive 1; test_wait.parity 1
drop all, bytes pending  | init 1; expect_tx 16; arrive_drop 1; complete_tx 16; arrive 1
one too many, then bytes | init 1; expect_tx 16; arrive 1; arrive 1; complete_tx 16; arrive 1
two too many, then bytes | init 2; expect_tx 16; arrive 2; arrive 2; complete_tx 16
expect_tx completes      | init 1; complete_tx 16; arrive 1; expect_tx 16; arrive 1
nothing at all           | init 1; arrive 0; expect_tx 0; complete_tx 0; arrive.expect_tx 0
inval                    | init 3; inval 0; arrive 1; init 2; arrive 2
least bytes              | init 1; complete_tx 1048575; complete_tx 1; complete_tx 1
most bytes               | init 1; expect_tx 1048575; expect_tx 1
a large operand          | init 1; expect_tx 2097151; expect_tx 4294967295; complete_tx 16777216
count 0, then arrive     | init 0; test_wait.parity 0; arrive 1; test_wait.parity 0
count 2**20, then arrive | init 1048576; arrive 1; arrive 1048575; test_wait.parity 0
a count too large        | init 5; arrive 1048575
no arrivals, drop        | init 2; arrive_drop 0; arrive_drop 3
"""
WORDS = [
    *[1 << bit for bit in (0, 1, 20, 21, 22, 41, 42, 43, 62, 63)],
    *[0x7FFFF800_001FFFFE | 1 << bit for bit in (0, 21, 22, 41, 42, 63)],
    *[0, 2**64 - 1, 0x7FC0DEAD_7FC0DEAD, 0x3F800000_3F800000, 0x3F800000_00000000],
    *[0x45801000_45800000, 0xA5A5A5A5_A5A5A5A5, 0x00000001_00000000],
]


def mbarrier_question(name: str, program: list[tuple[str, int]]) -> Question:
    """Runs the operations one after another; an output pair is the word after and the result.

    A fence stands before each load of the word: without it the compiler takes one value for all of
    them, read before the first operation. The lower half of a token is whatever its register holds.
    """
    body = ""
    for number, (op, _) in enumerate(program):
        body += f"  ld.global.b64 %l1, [%pa+{8 * number}]; cvt.u32.u64 %r1, %l1; mov.b64 %l2, 0;\n"
        body += f"  {OPERATIONS[op]} membar.cta; ld.volatile.shared.b64 %l3, [bar]; membar.cta;\n"
        body += f"  st.global.b64 [%po+{16 * number}], %l3;\n"
        body += f"  st.global.b64 [%po+{16 * number + 8}], %l2;\n"
    operands = np.array([argument for _, argument in program], np.uint64)
    ops = [f"{op} {argument:#x}" for op, argument in program]
    module = HEAD + body + TAIL
    mask = np.full(2 * len(program), 2**64 - 1, np.uint64)
    mask[1::2] = [2**64 - 2**32 if op.startswith("arrive") else 2**64 - 1 for op, _ in program]
    out = ("u8", mask.size)
    return Question("mbarrier_errors", name, module, out, [operands], notes={"ops": ops}, mask=mask)


INIT = "setp.eq.u32 %p0, %r0, 0; @%p0 mbarrier.init.shared::cta.b64 [bar], 1; bar.sync 0;"
TOO_MANY = f"setp.eq.u32 %p1, %r0, 7; @%p1 mbarrier.arrive{AT} _, [bar], 2;"
EXPECT = f"@%p0 mbarrier.expect_tx.relaxed.cta{AT} [bar]"
TOO_LARGE = f"{EXPECT}, 1048575; {EXPECT}, 1;"
AFTERWARDS = {
    "nothing": "",
    "a warp barrier": "bar.warp.sync -1;",
    "a barrier of the block": "bar.sync 0;",
    "a load from global memory": "ld.volatile.global.b32 %r5, [%po]; and.b32 %r5, %r5, 0;",
    "a sleep of 10 us": "nanosleep.u32 10000;",
    "a sleep of the other warps": "setp.gt.u32 %p2, %r0, 31; @%p2 nanosleep.u32 10000;",
    "a clock": "mov.u32 %r5, %clock; and.b32 %r5, %r5, 0;",
}


def late_questions() -> Iterator[Question]:
    """Is a fault seen that no thread waits for, if only this follows, and a store?"""
    for block in (32, 256):
        for mistake, text in (("arrivals", TOO_MANY), ("bytes", TOO_LARGE)):
            for after, more in AFTERWARDS.items():
                body = f"  mov.u32 %r5, 0; {INIT}\n  {text}\n  {more}\n  add.u32 %r5, %r5, 1;\n"
                body += "  mad.wide.u32 %l1, %r0, 4, %po; st.global.b32 [%l1], %r5;\n"
                name = f"too many {mistake} of {block} threads, then {after}"
                yield Question(
                    "mbarrier_errors", name, HEAD + body + TAIL, ("u4", block), [], block
                )


def mbarrier_questions() -> Iterator[Question]:
    for line in PROGRAMS.strip().splitlines():
        name, _, text = line.partition("|")
        pairs = (op.split() for op in text.split(";"))
        yield mbarrier_question(name.strip(), [(op, int(argument)) for op, argument in pairs])
    for word in WORDS:
        for op, argument in (("arrive", 1), ("expect_tx", 16), ("complete_tx", 16)):
            yield mbarrier_question(f"{op} on {word:#018x}", [("word", word), (op, argument)])
    yield from late_questions()


# ------------------------------------------------------------------------------------------ atom
ROWS = 32
VECTORS = [
    *[("f32", n, "add") for n in (2, 4)],
    *[(kind, n, op) for kind in ("f16", "bf16") for n in (2, 8) for op in ("add", "min", "max")],
    *[(kind, 4, op) for kind in ("f16x2", "bf16x2") for op in ("add", "min", "max")],
]


def vector_question(kind: str, count: int, op: str, form: str) -> Question:
    """A row a thread: memory before, operands; old values (of atom) and memory after."""
    nbytes = {"f32": 4, "f16": 2, "bf16": 2}.get(kind, 4)
    prefix, width = ("%h", "b16") if nbytes == 2 else ("%r", "b32")
    size = nbytes * count
    operand = "{" + ", ".join(f"{prefix}{k + 4}" for k in range(count)) + "}"
    old = "{" + ", ".join(f"{prefix}{k + 12}" for k in range(count)) + "}"
    place = f"mad.wide.u32 %l1, %r0, {size}, %pa; mad.wide.u32 %l2, %r0, {2 * size}, %po;"
    copy = "".join(
        f"ld.global.{width} {prefix}1, [%l1+{nbytes * k}]; "
        f"st.global.{width} [%l2+{size + nbytes * k}], {prefix}1;\n  "
        for k in range(count)
    )
    load = "".join(
        f"ld.global.{width} {prefix}{k + 4}, [%l3+{nbytes * k}];\n  " for k in range(count)
    )
    noftz = "" if kind == "f32" else ".noftz"
    result = f"{old}, " if form == "atom" else ""
    run = f"{form}.global.{op}{noftz}.v{count}.{kind} {result}[%l4], {operand};"
    store = "".join(
        f"st.global.{width} [%l2+{nbytes * k}], {prefix}{k + 12};\n  " for k in range(count)
    )
    body = f"  {place}\n  {copy}mad.wide.u32 %l3, %r0, {size}, %pb; add.u64 %l4, %l2, {size};\n  "
    body += f"{load}{run}\n  {store if form == 'atom' else ''}\n"
    rng = np.random.default_rng([count, *f"{kind}{op}".encode()])
    inputs = [float_bits(rng, kind, ROWS * count) for _ in range(2)]
    name = f"{form}.global.{op}{noftz}.v{count}.{kind}"
    dtype = f"u{nbytes}"
    notes = {"nan_payload": "ignore"}
    return Question(
        "atom", name, HEAD + body + TAIL, (dtype, 2 * ROWS * count), inputs, ROWS, notes
    )


def float_bits(rng: np.random.Generator, kind: str, n: int) -> np.ndarray:
    """Random bits of a type; subnormals, zeros, infinities, NaNs and near values among them."""
    scalar = kind.removesuffix("x2")
    n *= 1 + kind.endswith("x2")
    dtype = np.uint32 if scalar == "f32" else np.uint16
    mantissa = {"f32": 23, "f16": 10, "bf16": 7}[scalar]
    sign = dtype(1 << (8 * dtype().itemsize - 1))
    bits = rng.integers(0, 1 << 8 * dtype().itemsize, n, dtype)
    near = dtype(1 << mantissa) * dtype(14) + rng.integers(0, 1 << mantissa, n, dtype)
    small = rng.integers(0, 2 << mantissa, n, dtype)
    odd = rng.choice(np.array([0, sign, 1, (sign - 1) & ~dtype((1 << mantissa) - 1)], dtype), n)
    pick = rng.integers(0, 4, n)
    chosen = np.choose(pick, [bits, near, small, odd]) | rng.choice(np.array([0, sign], dtype), n)
    return chosen.astype(dtype).view(np.uint32) if kind.endswith("x2") else chosen.astype(dtype)


def atom_questions() -> Iterator[Question]:
    for kind, count, op in VECTORS:
        for form in ("atom", "red"):
            yield vector_question(kind, count, op, form)


# --------------------------------------------------------------------------------------- control
BARRIERS = {
    "48 threads, count 64": (48, "bar.sync 1, 64;"),
    "half of the warps exited, count of all": (
        128,
        "setp.gt.u32 %p1, %r0, 63; @%p1 exit; bar.sync 1, 128;",
    ),
    "half of the warps exited, no count": (128, "setp.gt.u32 %p1, %r0, 63; @%p1 exit; bar.sync 1;"),
    "half of a warp exited, count 64": (64, "setp.gt.u32 %p1, %r0, 47; @%p1 exit; bar.sync 1, 64;"),
    "half of a warp exited, barrier.sync": (
        64,
        "setp.gt.u32 %p1, %r0, 47; @%p1 exit; barrier.sync 1, 64;",
    ),
    "exit after bar.arrive": (
        64,
        "setp.gt.u32 %p1, %r0, 31; @%p1 bar.arrive 1, 64; @%p1 exit; bar.sync 1, 64;",
    ),
    "two halves of a warp at two barrier.sync": (
        32,
        "setp.gt.u32 %p1, %r0, 15; @%p1 bra B; barrier.sync 1; bra C; B: barrier.sync 1; C:",
    ),
    "half of a warp only, barrier.sync with count 32": (
        32,
        "setp.gt.u32 %p1, %r0, 15; @!%p1 barrier.sync 1, 32;",
    ),
    "count 32 of 64 threads": (64, "bar.sync 1, 32;"),
    "number 16 in a register": (32, "mov.u32 %r1, 16; bar.sync %r1;"),
    "count 33 in a register": (64, "mov.u32 %r2, %ntid.x; sub.u32 %r2, %r2, 31; bar.sync 1, %r2;"),
    "numbers 17 and 1 in a register": (
        64,
        "setp.gt.u32 %p1, %r0, 31; selp.u32 %r1, 17, 1, %p1; bar.sync %r1, 64;",
    ),
    "number 2**31 + 2 in a register": (
        64,
        "setp.gt.u32 %p1, %r0, 31; selp.u32 %r1, 0x80000002, 2, %p1; bar.sync %r1, 64;",
    ),
    "count 0 in a register": (64, "sub.u32 %r2, %r0, %r0; bar.sync 1, %r2;"),
    "count 4096 in a register": (64, "mov.u32 %r2, %ntid.x; shl.b32 %r2, %r2, 6; bar.sync 1, %r2;"),
    "count of half of the threads": (
        64,
        "mov.u32 %r2, %ntid.x; shr.u32 %r2, %r2, 1; bar.sync 1, %r2;",
    ),
    "bar.red of a partial warp": (
        40,
        (
            "setp.gt.u32 %p1, %r0, 35; bar.red.popc.u32 %r5, 0, %p1; "
            "bar.red.and.pred %p2, 0, !%p1; selp.u32 %r6, 100, 0, %p2; add.u32 %r5, %r5, %r6;"
        ),
    ),
}


def control_questions() -> Iterator[Question]:
    """Each thread writes 1 plus what it has got, if it comes through."""
    for name, (block, text) in BARRIERS.items():
        body = f"  mov.u32 %r5, 0;\n  {text}\n  add.u32 %r5, %r5, 1;\n"
        body += "  mad.wide.u32 %l1, %r0, 4, %po; st.global.b32 [%l1], %r5;\n"
        yield Question("control", name, HEAD + body + TAIL, ("u4", block), [], block)


def questions() -> list[Question]:
    """All of them."""
    return [*mbarrier_questions(), *atom_questions(), *control_questions()]
