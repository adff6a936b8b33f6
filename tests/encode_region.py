"""The encode-map region of tma_tile.cu as host C++ in a shared library, callable from Python.

The region is plain C++. Around it stands a function that takes the driver's encode function and
the address, so that a test can pass a stand-in that notes its arguments, or the real one on a GPU.
Needs a C++ compiler and the driver's header cuda.h, which the CUDA wheels and toolkits hold.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

from lesson import cuda_headers
from lesson.snippets import Source

ENCODE_TYPE = ctypes.CFUNCTYPE(
    ctypes.c_int,  # CUresult
    ctypes.c_void_p,  # the map
    ctypes.c_int,  # data type
    ctypes.c_uint32,  # rank
    ctypes.c_void_p,  # global address
    ctypes.POINTER(ctypes.c_uint64),  # shape
    ctypes.POINTER(ctypes.c_uint64),  # strides
    ctypes.POINTER(ctypes.c_uint32),  # box
    ctypes.POINTER(ctypes.c_uint32),  # element strides
    *(ctypes.c_int,) * 4,  # interleave, swizzle, L2 promotion, out-of-bounds fill
)

_FRAME = """\
#include <cuda.h>
#include <cstring>

{constants}

extern "C" int encodeMap(decltype(&cuTensorMapEncodeTiled) encodeTiled, float* in,
                         unsigned char* bytes)
{{
#line {line} "{name}"
{region}
    std::memcpy(bytes, &tileMap, sizeof tileMap);
    return encoded;
}}
"""
_USED = ("kGmemWidth", "kGmemHeight", "kTileWidth", "kTileHeight")


def compiler() -> str | None:
    """A C++ compiler of this machine."""
    return next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)


def include_dir() -> Path | None:
    """A folder that holds the driver's cuda.h."""
    dirs = [each for headers in cuda_headers.find_all() for each in headers.include_dirs]
    return next((each for each in dirs if (each / "cuda.h").is_file()), None)


def missing() -> str:
    """Why the region cannot be compiled here; empty where it can."""
    if compiler() is None:
        return "no C++ compiler (c++, g++, clang++)"
    return "" if include_dir() else "no cuda.h in the CUDA wheels or a toolkit"


def build(source: Source, folder: Path) -> ctypes.CDLL:
    """Compiles the region, warnings as errors, and loads it."""
    region = source.snippet("encode-map")
    constants = "\n".join(f"constexpr int {name} = {source.constant(name)};" for name in _USED)
    code = folder / "encode_map.cpp"
    code.write_text(
        _FRAME.format(
            constants=constants, line=region.first_line, name=region.source_name, region=region.text
        )
    )
    library = folder / "encode_map.so"
    command = [compiler(), "-std=c++17", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    command += ["-isystem", str(include_dir()), "-o", str(library), str(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the encode-map region does not compile as host C++:\n{done.stderr}")
    return ctypes.CDLL(str(library))


def encode(library: ctypes.CDLL, function: ctypes._CFuncPtr, address: int) -> tuple[int, bytes]:
    """The CUresult and the 128 bytes that the region makes with this encode function."""
    room = ctypes.create_string_buffer(128)
    call = library.encodeMap
    call.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    pointer = ctypes.cast(function, ctypes.c_void_p)
    return call(pointer, address, room), room.raw
