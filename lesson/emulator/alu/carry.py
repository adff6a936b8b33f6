"""Extended-precision integer arithmetic: chains through the carry flag CC.CF.

Models add.cc, addc, sub.cc, subc, mad.cc and madc on 32 and 64 bits. The flag is a bool array, the
last argument of what reads it and the last result of what writes it. Follows the PTX ISA,
"Extended-Precision Integer Arithmetic Instructions". A subtraction adds the complement, so it
leaves and takes the opposite of a borrow; PTX does not say so, but a chain of both kinds shows it
on an H200.
"""

from __future__ import annotations

import numpy as np

from lesson.emulator.alu.forms import INT32_64, Fn, Form, Table
from lesson.emulator.alu.integer import multiply_high

TABLE = Table()
define = TABLE.define

Flagged = tuple[np.ndarray, np.ndarray]


def add_out(a: np.ndarray, b: np.ndarray) -> Flagged:
    total = a + b
    return total, total < a


def add_inout(a: np.ndarray, b: np.ndarray, carry: np.ndarray) -> Flagged:
    partial, first = add_out(a, b)
    total, second = add_out(partial, carry.astype(partial.dtype))
    return total, first | second


def subtract_out(a: np.ndarray, b: np.ndarray) -> Flagged:
    return a - b, a >= b


def subtract_inout(a: np.ndarray, b: np.ndarray, carry: np.ndarray) -> Flagged:
    return add_inout(a, ~b, carry)


@define("add.cc", INT32_64, "T T -> T")
def add_cc(form: Form) -> Fn:
    return add_out


@define("addc", INT32_64, "T T -> T")
def addc(form: Form) -> Fn:
    return lambda a, b, carry: a + b + carry


@define("addc.cc", INT32_64, "T T -> T")
def addc_cc(form: Form) -> Fn:
    return add_inout


@define("sub.cc", INT32_64, "T T -> T")
def sub_cc(form: Form) -> Fn:
    return subtract_out


@define("subc", INT32_64, "T T -> T")
def subc(form: Form) -> Fn:
    return lambda a, b, carry: a + ~b + carry


@define("subc.cc", INT32_64, "T T -> T")
def subc_cc(form: Form) -> Fn:
    return subtract_inout


def half_product(form: Form) -> Fn:
    """The lower or the upper half of the product."""
    return np.multiply if ".lo" in form.name else multiply_high(form.nbits, form.signed)


@define("mad.lo.cc mad.hi.cc", INT32_64, "T T T -> T")
def mad_cc(form: Form) -> Fn:
    product = half_product(form)
    return lambda a, b, c: add_out(product(a, b), c)


@define("madc.lo madc.hi", INT32_64, "T T T -> T")
def madc(form: Form) -> Fn:
    product = half_product(form)
    return lambda a, b, c, carry: product(a, b) + c + carry


@define("madc.lo.cc madc.hi.cc", INT32_64, "T T T -> T")
def madc_cc(form: Form) -> Fn:
    product = half_product(form)
    return lambda a, b, c, carry: add_inout(product(a, b), c, carry)
