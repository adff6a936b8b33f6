"""Interrupts while NVRTC compiles: it must neither hang nor crash, and later ones must work."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from lesson import compile as compiler
from lesson.errors import CompileError

# Interrupts all through NVRTC's own work, from another thread; then one that must arrive.
SCRIPT = """
import os, signal, threading, time
from lesson import compile_nvrtc, helpers

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
nvrtc, _ = compile_nvrtc.load()
compile_program = nvrtc.nvrtcCompileProgram

def interrupted_all_along(*args):
    done = threading.Event()

    def press():
        while not done.wait(0.01):
            os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    try:
        return compile_program(*args)
    finally:
        done.set()
        presser.join()

nvrtc.nvrtcCompileProgram = interrupted_all_along
print(helpers.count_instructions("cp.async.bulk.tensor"))
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)
except KeyboardInterrupt:
    print("interrupted")
"""


def need_nvrtc() -> None:
    try:
        compiler.nvrtc_version()
    except CompileError as error:
        pytest.skip(str(error))


def test_an_interrupt_during_a_compile_neither_hangs_nor_crashes_it():
    need_nvrtc()
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.stdout == "{'cp.async.bulk.tensor': 1}\ninterrupted\n", ran.stderr


def test_a_compile_leaves_the_reader_s_own_handler_in_place():
    need_nvrtc()

    def handler(*_: object) -> None:
        """A reader's own."""

    before = signal.signal(signal.SIGINT, handler)
    try:
        compiler.to_ptx('extern "C" __global__ void handled() {}')
        assert signal.getsignal(signal.SIGINT) is handler
        with pytest.raises(CompileError):
            compiler.to_ptx('extern "C" __global__ void handled() { mistake; }')
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_compile_in_another_thread_works_too():
    need_nvrtc()
    made: list[str] = []
    text = 'extern "C" __global__ void elsewhere() {}'
    thread = threading.Thread(target=lambda: made.append(compiler.to_ptx(text).text))
    thread.start()
    thread.join()
    assert ".entry elsewhere" in made[0]
