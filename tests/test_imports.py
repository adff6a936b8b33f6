"""Imports point down only; heavy libraries load only when used; `import lesson` is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "lesson"

# From the top down. A module imports from layers below its own, or from its own layer without a
# circle. A module that fits no pattern stands where "*" is.
LAYERS = {
    "commands": "__main__ run_lesson slides get_notebook info check_command bench_command",
    "the notebook's door": "helpers",
    "what helpers use": "*",
    "sources and answers": "snippets reference",
    "running": "gpu* compile* recorded cuda_headers emulator*",
    "tensor maps": "tensor_map*",
    "the ground": "errors constants __init__",
}
# Inside the emulator, from the top down.
EMULATOR_LAYERS = {
    "launch": "__init__ launch* globals shape",
    "compiled code": "program isa* groups *operands",
    "lanes in lockstep": "simt machine progress control",
    "units": "*",
    "memory": "memory special",
    "records": "trace* observe limits lanes windows layout registers words ptx*",
}
# Where each heavy library may be imported, and never when the module itself is imported.
HEAVY = {
    "cupy": ["gpu*", "bench.*"],
    "cuda": ["compile*", "tensor_map*", "gpu*"],
    "nbclient": [],
    "nbconvert": [],
    "nbformat": [],
    "IPython": ["helpers", "listing", "map_report", "diagnosis*", "cards"],
    "torch": ["bench.*"],
    "numba": [],
}


@cache
def modules() -> list[str]:
    """Dotted names inside the package: `errors`, `emulator.ptx`."""
    files = (path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
    return sorted(".".join(file.with_suffix("").parts) for file in files)


@cache
def imports(module: str) -> list[tuple[str, bool]]:
    """Absolute names that a module imports, and whether only inside functions."""
    tree = ast.parse((PACKAGE / Path(*module.split("."))).with_suffix(".py").read_text())
    return list(walk(tree, f"lesson.{module}", inside=False))


def walk(node: ast.AST, module: str, inside: bool) -> Iterator[tuple[str, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from ((alias.name, inside) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            source = absolute(child, module)
            yield from ((f"{source}.{alias.name}", inside) for alias in child.names)
        deeper = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from walk(child, module, inside or deeper)


def absolute(statement: ast.ImportFrom, module: str) -> str:
    """`from .forms import Alu` in `lesson.emulator.alu.half` -> `lesson.emulator.alu.forms`."""
    package = module.split(".")[: -statement.level] if statement.level else []
    return ".".join([*package, *filter(None, [statement.module])])


def own_imports(module: str, *, when_loaded: bool = False) -> set[str]:
    """The modules of this package that a module imports, or only those that it needs to load."""
    found = set()
    for name, inside_function in imports(module):
        if name.split(".")[0] == "lesson" and not (when_loaded and inside_function):
            found.add(module_of(name))
    return found - {module}


def module_of(name: str) -> str:
    """`lesson.errors.Hang` -> `errors`; `lesson.emulator.alu` -> `emulator.alu.__init__`."""
    known = set(modules())
    parts = name.split(".")[1:]
    for end in (len(parts), len(parts) - 1):
        for candidate in (parts[:end], [*parts[:end], "__init__"]):
            if ".".join(candidate) in known:
                return ".".join(candidate)
    raise LookupError(f"{name} must be a module of the package or a name in one")


def layer(module: str, layers: dict[str, str]) -> int:
    """How far down a module stands."""
    depths = list(enumerate(layers.values()))
    for depth, patterns in depths:
        if any(fnmatchcase(module, pattern) for pattern in patterns.split() if pattern != "*"):
            return depth
    return next(depth for depth, patterns in depths if patterns == "*")


def is_inside_emulator(module: str) -> bool:
    return module.startswith("emulator.")


def edges() -> list[tuple[str, str]]:
    return [(module, other) for module in modules() for other in sorted(own_imports(module))]


def circles(graph: dict[str, set[str]]) -> list[str]:
    """What is left when modules that import nothing that is left are taken away repeatedly."""
    left = {module: set(others) for module, others in graph.items()}
    while free := [module for module, others in left.items() if not others & left.keys()]:
        for module in free:
            del left[module]
    return sorted(left)


def test_imports_point_down_only():
    upwards = [
        f"{module} -> {other}"
        for module, other in edges()
        if not (is_inside_emulator(module) and is_inside_emulator(other))
        and layer(module, LAYERS) > layer(other, LAYERS)
    ]
    assert upwards == []


def test_imports_point_down_only_inside_the_emulator():
    upwards = [
        f"{module} -> {other}"
        for module, other in edges()
        if is_inside_emulator(module)
        and is_inside_emulator(other)
        and emulator_layer(module) > emulator_layer(other)
    ]
    assert upwards == []


def emulator_layer(module: str) -> int:
    return layer(module.removeprefix("emulator."), EMULATOR_LAYERS)


def test_no_modules_load_each_other_in_a_circle():
    assert circles({module: own_imports(module, when_loaded=True) for module in modules()}) == []


def test_the_reference_shares_no_code_with_what_it_judges():
    ours = {"errors", "tensor_map", "tensor_map_enums", "constants"}
    assert own_imports("reference") <= ours
    assert {"numpy"} >= {
        name.split(".")[0] for name, _ in imports("reference")
    } - sys.stdlib_module_names - {"lesson"}


@pytest.mark.parametrize("library", HEAVY)
def test_a_heavy_library_is_imported_inside_functions_of_its_own_rooms_only(library):
    wrong = [
        f"{module}: {name}"
        for module in modules()
        for name, inside_function in imports(module)
        if name.split(".")[0] == library
        and not (inside_function and any(fnmatchcase(module, p) for p in HEAVY[library]))
    ]
    assert wrong == []


def test_matplotlib_is_imported_by_the_figure_modules_alone():
    users = {m for m in modules() for name, _ in imports(m) if name.startswith("matplotlib")}
    assert {m for m in users if not m.startswith("figure")} == set()


def python(code: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    return ran.stdout


def loaded_by(statement: str) -> set[str]:
    """Top-level packages that a statement loads into a fresh interpreter."""
    names = "{m.split('.')[0] for m in sys.modules}"
    return set(python(f"import sys; a = {names}; {statement}; print(*{names} - a)").split())


def test_importing_the_package_loads_no_cuda_library_and_no_numpy():
    assert loaded_by("import lesson") & {"numpy", "matplotlib", *HEAVY} == set()


def test_the_command_line_loads_no_cuda_library_and_no_jupyter():
    assert loaded_by("import lesson.__main__") & {"matplotlib", *HEAVY} == set()


def test_importing_the_package_takes_less_than_300_ms():
    code = "import time; t = time.perf_counter(); import lesson; print(time.perf_counter() - t)"
    assert min(float(python(code)) for _ in range(3)) < 0.3


def test_a_helper_is_found_on_the_package_itself():
    import lesson
    from lesson import helpers

    names = set(helpers.__all__) - set(modules())  # a module stays what its name says
    assert len(names) >= 10
    assert {name for name in names if getattr(lesson, name) is not getattr(helpers, name)} == set()
    assert names < set(dir(lesson))


def test_a_name_that_is_not_there_is_an_attribute_error():
    import lesson

    with pytest.raises(AttributeError, match="module 'lesson' has no attribute 'no_such_helper'"):
        _ = lesson.no_such_helper


def test_the_circle_finder_finds_a_circle():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["a", "b", "c"]
    assert circles({"a": {"b"}, "b": set()}) == []


def test_a_module_stands_where_its_name_says_or_in_the_middle():
    assert layer("run_lesson", LAYERS) == 0
    assert layer("a_new_module", LAYERS) == 2
    assert layer("tensor_map_rules", LAYERS) == 5
    assert layer("tma_new", EMULATOR_LAYERS) == 3
