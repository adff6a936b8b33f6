"""The evidence is of the very source that is shipped, and says what is claimed of it."""

from __future__ import annotations

import json

import pytest

from lesson import recorded, snippets
from tests import record_nvrtc_versions
from tests.record_ptx import SHIPPED

NVRTC = json.loads(record_nvrtc_versions.RECORD.read_text())
HINT = "edited since: run `python -m tests.record_nvrtc_versions`"


def test_the_nvrtc_record_is_of_the_source_that_is_shipped():
    assert NVRTC["source_sha256"] == snippets.lesson_source().sha256, HINT
    for name, (_, kernel) in SHIPPED.items():
        assert NVRTC["kernels"][name] == recorded.sha256(kernel.text), HINT


@pytest.mark.parametrize("version", record_nvrtc_versions.WHEELS)
def test_the_device_half_compiles_without_a_warning_with_the_wheels_of(version: str):
    compiles = NVRTC["versions"][version]["compiles"]
    archs = ["compute_90"] if version == "12.6" else list(record_nvrtc_versions.ARCHITECTURES)
    assert [each["arch"] for each in compiles] == [arch for arch in archs for _ in SHIPPED]
    for each in compiles:
        assert (each["outcome"], each["log"], each["nvrtc"]) == ("ok", "", version)
        assert f"({version})" in each["headers"]
