"""PTX text becomes the records that it describes."""

from __future__ import annotations

import pytest

from lesson.emulator.ptx import (
    Addr,
    Imm,
    Instr,
    Label,
    Loc,
    Not,
    Pair,
    Reg,
    Sink,
    Sym,
    TensorAddr,
    Vec,
    parse,
)
from tests.emulator.ptx_text import HEAD

DECLARED = (
    ".reg .pred %p, %q; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>; .shared .b64 bar;"
    " .shared .align 16 .b8 tile[64];"
)


def body_of(text: str, head: str = "") -> list[Instr | Label]:
    function = parse(f"{HEAD}{head}.entry k(.param .u64 a)\n{{{DECLARED}\n{text}\n}}\n").functions[
        "k"
    ]
    assert function.body is not None
    return function.body


def one(text: str) -> Instr:
    (instr,) = body_of(text)
    assert isinstance(instr, Instr)
    return instr


OPERANDS = [
    ("add.u32 %r1, %r2, -7;", (Reg("%r1"), Reg("%r2"), Imm(-7))),
    ("mov.u32 %r1, 0xFFFFFFFF;", (Reg("%r1"), Imm(0xFFFFFFFF))),
    ("mov.u32 %r1, 0x10U;", (Reg("%r1"), Imm(16))),
    ("mov.u32 %r1, 0b101;", (Reg("%r1"), Imm(5))),
    ("mov.u32 %r1, 017;", (Reg("%r1"), Imm(15))),
    ("mov.f32 %r1, 0f3F800000;", (Reg("%r1"), Imm(0x3F800000, "f32bits"))),
    ("mov.f32 %r1, -0f3F800000;", (Reg("%r1"), Imm(0xBF800000, "f32bits"))),
    ("mov.f64 %rd1, 0d3FF0000000000000;", (Reg("%rd1"), Imm(0x3FF0000000000000, "f64bits"))),
    ("mov.f32 %r1, 1.5e-3;", (Reg("%r1"), Imm(1.5e-3, "decimal"))),
    ("mov.u32 %r1, %tid.x;", (Reg("%r1"), Reg("%tid.x"))),
    ("mov.u32 %r1, WARP_SZ;", (Reg("%r1"), Imm(32))),
    ("mov.u64 %rd1, tile+16;", (Reg("%rd1"), Sym("tile", 16))),
    ("ld.shared.u32 %r1, [%rd1+-4];", (Reg("%r1"), Addr(Reg("%rd1"), -4))),
    ("ld.shared.u32 %r1, [tile+8];", (Reg("%r1"), Addr(Sym("tile"), 8))),
    ("ld.shared.u32 %r1, [4096];", (Reg("%r1"), Addr(Imm(4096)))),
    ("ld.shared.v2.u32 {%r1, _}, [tile];", (Vec((Reg("%r1"), Sink())), Addr(Sym("tile")))),
    ("selp.b32 %r1, 1, 0, !%p;", (Reg("%r1"), Imm(1), Imm(0), Not(Reg("%p")))),
    (
        "setp.lt.and.s32 %p|%q, %r1, 0, !%q;",
        (Pair(Reg("%p"), Reg("%q")), Reg("%r1"), Imm(0), Not(Reg("%q"))),
    ),
    ("mbarrier.arrive.shared.b64 _, [bar];", (Sink(), Addr(Sym("bar")))),
    (
        "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd1, {%r1, %r2}];",
        (TensorAddr(Reg("%rd1"), Vec((Reg("%r1"), Reg("%r2")))),),
    ),
    ("call f;", (Vec(()), Sym("f"), Vec(()))),
    ("call.uni (%r1), f, (%r2, 3);", (Vec((Reg("%r1"),)), Sym("f"), Vec((Reg("%r2"), Imm(3))))),
    (
        "call (%r1), %rd1, (%r2), proto;",
        (Vec((Reg("%r1"),)), Reg("%rd1"), Vec((Reg("%r2"),)), Sym("proto")),
    ),
]  # fmt: skip


@pytest.mark.parametrize("text,operands", OPERANDS, ids=[text for text, _ in OPERANDS])
def test_operands_are_read(text: str, operands: tuple[object, ...]) -> None:
    assert one(text).operands == operands


def test_modifiers_keep_their_double_colons() -> None:
    instr = one(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        " [%r1], [%rd1, {%r2, %r3}], [bar];"
    )
    assert instr.opcode == "cp"
    assert instr.mods == (
        *("async", "bulk", "tensor", "2d", "shared::cluster", "global", "tile"),
        "mbarrier::complete_tx::bytes",
    )


def test_guards_are_read() -> None:
    instr = one("@!%p bra DONE;")
    assert (instr.pred, instr.pred_negated) == (Reg("%p"), True)
    assert one("ret;").pred is None


def test_lines_are_those_of_the_text() -> None:
    text = f"{HEAD}// one\n/* two\n three */\n.entry k()\n{{\n ret;\n}}\n"
    (instr,) = parse(text).functions["k"].body or []
    assert text.split("\n")[instr.line - 1] == " ret;"


def test_inlined_code_is_at_the_line_that_called_it() -> None:
    text = (
        f"{HEAD}.entry k()\n{{\n.loc 1 42 5\n"
        ".loc 2 7 1, function_name $L__info0, inlined_at 1 42 5\n"
        ".loc 3 9 2, function_name $L__info1+4, inlined_at 2 7 1\nret;\n}\n"
        '.file 1 "my.cu"\n.file 2 "barrier.h", 1234, 56\n.file 3 "ptx.h"\n'
    )
    (instr,) = parse(text).functions["k"].body or []
    assert instr.loc == Loc("my.cu", 42, "ptx.h", 9)


def test_debug_sections_are_skipped_and_keep_the_line_count() -> None:
    text = f"{HEAD}\t.section\t.debug_str\n\t{{\n$L:\n.b8 1,2,3\n}}\n.entry k()\n{{\nret;\n}}"
    (instr,) = parse(text).functions["k"].body or []
    assert text.split("\n")[instr.line - 1] == "ret;"


def test_registers_and_labels_of_a_block_are_its_own() -> None:
    body = body_of(
        "{ .reg .b32 x; mov.u32 x, 1; L: bra L; } { .reg .b32 x; mov.u32 x, 2; L: bra L; }"
    )
    first, _, jump, second, _, other = body
    assert isinstance(first, Instr)
    assert isinstance(second, Instr)
    assert first.operands[0] != second.operands[0]
    assert isinstance(jump, Instr)
    assert isinstance(other, Instr)
    assert jump.operands != other.operands


def test_an_inner_block_sees_the_outer_registers() -> None:
    inner = body_of("{ mov.u32 %r1, 1; }")[0]
    assert isinstance(inner, Instr)
    assert inner.operands[0] == Reg("%r1")


def test_a_range_of_a_billion_registers_costs_nothing() -> None:
    text = f"{HEAD}.entry k() {{ .reg .b32 %x<1000000000>; mov.u32 %x999999999, 0; }}"
    function = parse(text).functions["k"]
    assert function.registers == {"%x999999999": "b32"}


VARIABLES = [
    (".global .align 4 .u32 n = 256;", ("global", "u32", 4, 4, (Imm(256),))),
    (".const .b32 tab[3] = {1, -2, 0x3};", ("const", "b32", 12, 4, (Imm(1), Imm(-2), Imm(3)))),
    (".global .u8 name[6] = {1, 2};", ("global", "u8", 6, 1, (Imm(1), Imm(2)))),
    (".global .f32 m[2][2] = {{0f00000000, 1.0}, {2.0}};", ("global", "f32", 16, 4, None)),
    (".extern .shared .align 128 .b8 smem[];", ("shared", "b8", 0, 128, None)),
    (".visible .global .align 8 .u64 p = n;", ("global", "u64", 8, 8, (Sym("n"),))),
    (".global .u64 q = generic(n)+8;", ("global", "u64", 8, 8, (Sym("n", 8),))),
    (".global .v4 .f32 v;", ("global", "f32", 16, 16, None)),
    (".global .attribute(.managed) .s32 x;", ("global", "s32", 4, 4, None)),
]


@pytest.mark.parametrize("text,want", VARIABLES, ids=[text for text, _ in VARIABLES])
def test_variables_are_read(text: str, want: tuple[object, ...]) -> None:
    (variable,) = parse(HEAD + text).variables.values()
    space, kind, nbytes, align, init = want
    assert (variable.space, variable.type, variable.nbytes, variable.align) == (
        space,
        kind,
        nbytes,
        align,
    )
    if init is not None:
        assert variable.init == init


def test_functions_parameters_and_directives_are_read() -> None:
    module = parse(
        HEAD
        + """
        .extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
        .func (.param .b32 rv) add(.param .b32 a, .param .align 8 .b8 s[24]) .noreturn { ret; }
        .visible .entry k(.param .align 64 .b8 map[128], .param .u64 .ptr .global .align 16 out)
        .reqntid 256, 1, 1 .explicitcluster .reqnctapercluster 2 .minnctapersm 1 { ret; }
        """
    )
    assert module.entries == ["k"]
    kernel, add = module.functions["k"], module.functions["add"]
    assert [(p.name, p.nbytes, p.align) for p in kernel.params] == [("map", 128, 64), ("out", 8, 8)]
    assert kernel.directives["reqntid"] == (256, 1, 1)
    assert kernel.directives["reqnctapercluster"] == (2,)
    assert [p.nbytes for p in (*add.returns, *add.params)] == [4, 4, 24]
    assert module.functions["vprintf"].body is None


def test_tables_and_prototypes_are_read() -> None:
    function = parse(
        f"{HEAD}.entry k() {{ T: .branchtargets A, B;"
        " P: .callprototype (.param .b32 _) _ (.param .b64 _); A: B: ret; }"
    ).functions["k"]
    assert function.tables == {"T": ("A", "B")}
    returns, params = function.prototypes["P"]
    assert [v.type for v in (*returns, *params)] == ["b32", "b64"]
