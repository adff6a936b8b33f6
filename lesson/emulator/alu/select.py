"""Selection, moves between registers, and tests of a float's bits.

Models selp, slct, mov of one register, testp and copysign: the instructions that pass the bits of
a NaN through. Follows the PTX ISA, "Comparison and Selection Instructions", "mov", "testp" and
"copysign".
"""

from __future__ import annotations

import numpy as np

from lesson.emulator.alu.formats import FORMATS, flusher
from lesson.emulator.alu.forms import BITS, INTS, NBITS, UNSIGNED, Fn, Form, Table

TABLE = Table()
define = TABLE.define

WORDS = BITS + INTS + ("f32", "f64")


@define("selp", (*WORDS, "f16", "bf16"), "T T pred -> T")
def selp(form: Form) -> Fn:
    """Exact modulo the width, and faster than `np.where`."""
    return lambda a, b, c: (a - b) * c + b


@define("slct", ("s32",), "U U T -> U")
def slct_integer(form: Form) -> Fn | None:
    if form.types[0] not in WORDS:
        return None
    return lambda a, b, c: np.where(c.view(np.int32) >= 0, a, b)


@define("slct", ("f32",), "U U T -> U", flags="ftz")
def slct_float(form: Form) -> Fn | None:
    """a where c >= 0, which -0.0 is and NaN is not."""
    if form.types[0] not in WORDS:
        return None
    flush = flusher("f32") if "ftz" in form.flags else (lambda c: c)
    return lambda a, b, c: np.where(flush(c).view(np.float32) >= 0, a, b)


@define("mov", ("pred", "f16", "bf16", "f16x2", "bf16x2", *WORDS), "T -> T")
def mov(form: Form) -> Fn:
    return lambda a: a


# Predicates of a float's bits without the sign, given its smallest normal and its infinity. The
# chip counts zero as normal.
TESTS = {
    "finite": lambda a, normal, infinity: a < infinity,
    "infinite": lambda a, normal, infinity: a == infinity,
    "number": lambda a, normal, infinity: a <= infinity,
    "notanumber": lambda a, normal, infinity: a > infinity,
    "normal": lambda a, normal, infinity: ((a >= normal) & (a < infinity)) | (a == 0),
    "subnormal": lambda a, normal, infinity: (a > 0) & (a < normal),
}


@define("testp", ("f32", "f64"), "T -> pred", flags=" ".join(TESTS))
def testp(form: Form) -> Fn | None:
    test, fmt, dtype = TESTS.get(form.choice(*TESTS)), FORMATS[form.type], UNSIGNED[form.nbits]
    if test is None:
        return None
    mask, normal, infinity = dtype(fmt.sign - 1), dtype(fmt.smallest_normal), dtype(fmt.infinity)
    return lambda a: test(a & mask, normal, infinity)


@define("copysign", ("f32", "f64"), "T T -> T")
def copysign(form: Form) -> Fn:
    """The sign of a, the rest of b."""
    dtype = UNSIGNED[form.nbits]
    sign, rest = dtype(1 << (NBITS[form.type] - 1)), dtype((1 << (NBITS[form.type] - 1)) - 1)
    return lambda a, b: (a & sign) | (b & rest)
