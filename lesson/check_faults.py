"""What the chip stops a kernel for, as findings: the cause behind the error, as far as the run
shows it."""

from __future__ import annotations

import re

from lesson.check_scene import Scene
from lesson.check_words import WORDS
from lesson.emulator.observe import Copy
from lesson.emulator.ordering_notes import Note
from lesson.errors import DeviceFault, IllegalAddress, IllegalInstruction, MisalignedAddress
from lesson.findings import Finding

MAP_COPIES = (
    r"(?<!__grid_constant__ )(?<!__grid_constant__ const )\bCUtensorMap\s+\w+\s*=",
    r"(?<!__grid_constant__ )(?<!__grid_constant__ const )\bCUtensorMap\s+\w+\s*([,)]|$)",
)


def explain_fault(error: DeviceFault, scene: Scene) -> Finding:
    """The finding for an error of the device."""
    instr, lane = getattr(error, "instr", None), getattr(error, "lane", None)
    where = getattr(error, "where", None)
    note = Note("fault", instr, lane=-1 if lane is None else lane)
    if where is not None:
        note.block, note.thread = where.block, where.thread
    text = str(error)
    if isinstance(error, MisalignedAddress):
        return _misaligned(note, scene, text)
    if isinstance(error, IllegalInstruction):
        return _illegal(note, scene, text)
    if isinstance(error, IllegalAddress):
        return _address(note, scene, text)
    return _launch_failure(note, scene, text, getattr(error, "barrier", -1))


def _made(
    note: Note, scene: Scene, kind: str, says: str, cure: str, line: int = 0, **state: object
) -> Finding:
    at = scene.line_of(note.instr)
    return scene.finding(
        note, kind, line or at, says, cure, state, scene.place(note.instr, "here it stops")
    )


def _first_sentence(text: str) -> str:
    """The thing, the rule and the value of an error's text."""
    return re.split(r"\. (?=\S+ line \d|PTX line )", text, maxsplit=1)[0]


# ------------------------------------------------------------------------------------ alignment
def _misaligned(note: Note, scene: Scene, text: str) -> Finding:
    found = re.search(r"must be a multiple of (\d+) bytes, got (0x[0-9a-f]+)", text)
    unit, address = (int(found[1]), int(found[2], 16)) if found else (0, 0)
    name = note.instr.name if note.instr else ""
    is_copy = name.startswith(("cp.async.bulk", "cp.reduce")) and address < 1 << 32
    is_barrier = name.startswith("mbarrier") or (is_copy and unit == 8)
    line = scene.line_of(note.instr)
    if is_barrier or is_copy:
        line = _where_it_is_placed(note, scene, address) or line
    if is_barrier:
        return _made(
            note, scene, "misaligned-barrier",
            f"An mbarrier must lie on a multiple of 8 bytes, and this one lies at {address:#x}.",
            "Declare it as its own __shared__ variable with alignas(8), or move it to a multiple "
            "of 8 bytes.",
            line, address=f"{address:#x}", must_be_multiple_of=unit,
        )  # fmt: skip
    if is_copy:
        return _made(
            note, scene, "misaligned-shared",
            f"The shared memory address of a copy must be a multiple of {unit} bytes, and this one "
            f"is {address:#x}.",
            f"Declare the buffer with alignas({max(unit, 128)}) and start each tile at a multiple "
            f"of {unit} bytes in it.",
            line, address=f"{address:#x}", must_be_multiple_of=unit,
        )  # fmt: skip
    return _made(
        note, scene, "misaligned-address",
        f"This access must start at a multiple of {unit} bytes, and it starts at "
        f"{address:#x}.",
        "Align the variable (alignas), or access it in smaller pieces.",
        address=f"{address:#x}",
    )  # fmt: skip


def _where_it_is_placed(note: Note, scene: Scene, address: int) -> int:
    """The line that makes the bad address: a pointer into the array, else its declaration."""
    if scene.m is None or note.lane < 0 or address >= 1 << 32:
        return 0
    offset = (address & 0xFFFFFF) - 0x400
    block = note.lane // scene.m.padded_threads
    found = scene.variable(block * scene.m.shared_stride + offset)
    if found is None:
        return 0
    name = re.escape(found[0])
    pointer = scene.find_line(rf"\*\s*(?:const\s+)?\w+\s*=[^=].*\b{name}\b")
    return pointer or scene.find_line(rf"__shared__.*\b{name}\b")


# ---------------------------------------------------------------------------- illegal instruction
def _illegal(note: Note, scene: Scene, text: str) -> Finding:
    what = _first_sentence(text)
    if "innermost start coordinate" in what:
        return _coordinate(note, scene, what)
    if "start coordinate" in what and "0 or more" in what:
        return _made(
            note, scene, "negative-store-coordinate",
            f"{_capital(what)}: the chip calls that an illegal instruction.",
            "Only a load may start in front of the tensor. Store the part inside through plain "
            "stores.",
        )  # fmt: skip
    if "type of a reduction" in what:
        return _made(
            note, scene, "reduction-type", f"{_capital(what)}.",
            "Encode the map with a type that has this reduction (UINT64 for and, or, xor).",
        )  # fmt: skip
    if "size of a bulk copy" in what:
        return _made(
            note, scene, "bulk-size", f"{_capital(what)}.",
            "Round the size up to 16 bytes, and pad the arrays.",
        )  # fmt: skip
    if "tensor map must be one" in what:
        return _made(
            note, scene, "map-not-a-map",
            "The address that the copy gets for its tensor map does not point at one.",
            "Pass the address of the kernel's own parameter (&map), or of the map in global "
            "memory.",
        )  # fmt: skip
    return _made(note, scene, "fault", f"{_capital(what)}.", "See the line above.")


def _coordinate(note: Note, scene: Scene, what: str) -> Finding:
    """Off the 16-byte boundary, and what that suggests."""
    found = re.search(r"got (-?\d+) \((-?\d+) x (\w+)\)", what)
    value = int(found[2]) if found else 0
    block = note.block or (0, 0, 0)
    tmap = next(iter(scene.case.maps.values()), None)
    width = tmap.box[0] if tmap is not None else 0
    hint, cure = (
        "",
        "Start at a multiple of 16 bytes, and skip the first elements in shared memory.",
    )
    if value == block[0] and width > 1 and value:
        hint = (
            f" {value} is blockIdx.x: coordinates count elements, not tiles, so block {value} "
            "starts at "
            f"{value} * {width}."
        )
        cure = (
            f"Multiply the tile number by the width of the tile: blockIdx.x * {width}, "
            f"blockIdx.y * {tmap.box[-1]}."
        )
    elif width and value % width in (1, width - 1):
        off = 1 if value % width == 1 else -1
        hint = (
            f" That is {off:+d} from a multiple of the box's {width}: a halo offset that the "
            "box does not allow."
        )
        cure = (
            "Start at the tile's own first element, or shift by a multiple of 16 bytes and "
            "widen the box."
        )
    return _made(
        note, scene, "misaligned-coordinate",
        f"{_capital(what)}: the chip calls that an illegal instruction.{hint}", cure,
        coordinate=value,
    )  # fmt: skip


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# ----------------------------------------------------------------------------------- bad address
def _address(note: Note, scene: Scene, text: str) -> Finding:
    what = _first_sentence(text)
    if "tensor map must lie in" in what:
        line = next(filter(None, map(scene.find_line, MAP_COPIES)), 0)
        return _made(
            note, scene, "map-not-grid-constant",
            "The tensor map is copied into a thread's local memory, where the copy engine cannot "
            "read it: it is a "
            "by-value parameter without __grid_constant__, or a variable of the kernel.",
            "Declare the parameter as `const __grid_constant__ CUtensorMap`, and do not copy it "
            "into a variable.",
            line or scene.line_of(note.instr),
        )  # fmt: skip
    if "tensor copy must end" in what or "bulk copy must end" in what:
        return _made(
            note,
            scene,
            "copy-overruns-array",
            f"{_capital(what)}: the copy leaves the block's shared memory.",
            "Make the box of the map as small as the array, or the array larger.",
        )
    if "shared address" in what or "mbarrier must lie" in what:
        return _made(
            note, scene, "shared-out-of-bounds", f"{_capital(what)}.",
            "Check the index against the array, and the dynamic shared memory that the launch asks "
            "for.",
        )  # fmt: skip
    if "box of a tensor copy" in what:
        return _made(
            note,
            scene,
            "out-of-bounds",
            f"The map describes more than its array: {scene.named(what)}.",
            "Give the map the shape (x first) and the row strides (in bytes) of the array that it "
            "is made for.",
        )
    return _made(
        note, scene, "out-of-bounds", f"An index runs out of its array: {scene.named(what)}.",
        "Guard the access: only elements inside the matrix, and the loop to the last element, not "
        "past it.",
    )  # fmt: skip


# -------------------------------------------------------------------------------- launch failure
def _launch_failure(note: Note, scene: Scene, text: str, index: int) -> Finding:
    what = _first_sentence(text)
    if "must be initialised before" in what:
        note.facts["index"] = max(index, 0)
        if scene.barrier(index) is None:
            return WORDS["barrier-not-initialised"](note, scene)
    if "transaction count must stay" in what:
        return _bytes_out_of_range(note, scene, what)
    barrier = scene.barrier(index)
    if barrier is not None and "arrivals" in what:
        arrivals = max(barrier.now.arrivals, barrier.count) + 1
        note.facts |= {"index": index, "count": barrier.count, "arrivals": arrivals}
        note.other = barrier.init
        return WORDS["too-many-arrivals"](note, scene)
    return _made(note, scene, "fault", f"{_capital(what)}.", "See the rule in the sentence.")


def _bytes_out_of_range(note: Note, scene: Scene, what: str) -> Finding:
    copies: dict[tuple[object, ...], set[int]] = {}
    for copy in scene.observer.copies:
        copies.setdefault(_key(copy), set()).add(copy.lane)
    threads = max((len(lanes) for lanes in copies.values()), default=0)
    hint = f" {threads} threads of a block issue the same copy." if threads > 1 else ""
    return _made(
        note, scene, "bytes-out-of-range", f"{_capital(what)}.{hint}",
        "Expect the bytes of each copy once, in one thread, and let the phase end before the next.",
    )  # fmt: skip


def _key(copy: Copy) -> tuple[object, ...]:
    return copy.instr.line, copy.block, copy.coords, copy.smem_start
