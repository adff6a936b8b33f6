"""PTX of a source region, and counts of instructions."""

import re

import pytest

from lesson import compile as compiler
from lesson import ptx_view, snippets
from lesson.errors import SnippetError
from lesson.kernel_source import TileKernel


def ptx() -> str:
    source = TileKernel().source()
    return compiler.to_ptx(source.text, name=source.name).text


def test_the_issue_snippet_became_one_tensor_copy():
    region = snippets.lesson_source().snippet("issue-tma")
    line = ptx_view.line_of(ptx(), region, "cp.async.bulk.tensor")
    assert re.fullmatch(
        r"cp\.async\.bulk\.tensor\.2d\.shared::cluster\.global(\.tile)?"
        r"\.mbarrier::complete_tx::bytes \[%r\d+\], \[%rd\d+, \{%r\d+, %r\d+\}\], \[%r\d+\];",
        line,
    )


def test_a_region_without_such_an_instruction_is_refused():
    region = snippets.lesson_source().snippet("plain-store")
    with pytest.raises(SnippetError, match=r"'plain-store' must become an instruction 'cp\.async"):
        ptx_view.line_of(ptx(), region, "cp.async.bulk.tensor")


def test_instructions_are_counted_by_kind_whatever_their_type():
    text = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<3>;
    .reg .f32 %f<2>;
    ld.param.u64 %rd1, [p];
    ld.global.u32 %r1, [%rd1];
    ld.global.nc.f32 %f1, [%rd1+4];
    ld.volatile.global.u32 %r2, [%rd1];
    st.global.u32 [%rd1], %r1;
    ret;
}
"""
    assert ptx_view.count(text, ("ld.global", "ld", "st.shared", "st.global.u32")) == {
        "ld.global": 3,
        "ld": 4,
        "st.shared": 0,
        "st.global.u32": 1,
    }


def test_the_sass_line_is_the_one_that_was_recorded():
    assert re.fullmatch(r"UTMALDG\.2D \[UR\d+\], \[UR\d+\]", ptx_view.recorded_sass())
