"""Finds private attributes of other libraries that delayqueue/ reads or writes: `python -m scripts.private`.

Such an attribute can be gone with the next release of its library, and no version of ours can forbid that. What is
left of them stands in LEFT, which may only shrink: an entry that is not used any more is an error, too.

An attribute counts as our own if its module defines it, or, on `self`, the class or one of its bases in delayqueue/.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).parents[1] / "delayqueue"
# with an underscore, but documented by Python
PUBLIC: Final = frozenset({"_asdict", "_exit", "_fields", "_make", "_replace"})
# Where the attributes of a class begin that has a base of another library: elsewhere, it may write to what that has.
BEGINNINGS: Final = frozenset({"__init__", "__new__", "connection_made"})
LEFT: Final[dict[tuple[str, str], str]] = {}

Found = dict[tuple[str, str], list[int]]


def main() -> int:
    """Print what is wrong; returns 1 if anything is."""
    wrong = complaints(PACKAGE, LEFT)
    print("\n".join(wrong), end="\n" * bool(wrong))  # noqa: T201
    return int(bool(wrong))


def complaints(package: Path, left: dict[tuple[str, str], str]) -> list[str]:
    """What the package uses and `left` does not name, and what that names for nothing."""
    found = private_uses(package)
    new = [
        f"{module}:{lines[0]}: {name} is private to another library: use its public parts"
        for (module, name), lines in found.items()
        if (module, name) not in left
    ]
    stale = [
        f"{module}: {name} is not used any more: remove it from LEFT in scripts/private.py"
        for module, name in left
        if (module, name) not in found
    ]
    return new + stale


def private_uses(package: Path) -> Found:
    """The lines by module and attribute."""
    trees = {
        str(path.relative_to(package)): ast.parse(path.read_text("utf-8"))
        for path in sorted(package.rglob("*.py"))
    }
    classes: dict[str, list[ast.ClassDef]] = {}
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, []).append(node)
    found: Found = {}
    for module, tree in trees.items():
        for name, line in _uses(tree, classes):
            found.setdefault((module, name), []).append(line)
    return found


def _uses(tree: ast.Module, classes: dict[str, list[ast.ClassDef]]) -> Iterator[tuple[str, int]]:
    here = _defined(tree) | _set(tree)
    own_class = {
        id(node): each
        for each in ast.walk(tree)
        if isinstance(each, ast.ClassDef)
        for node in ast.walk(each)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not _is_private(node.attr):
            continue
        each = own_class.get(id(node))
        own = _of_class(each, classes) if each and _is_self(node.value) else here
        if node.attr not in own:
            yield node.attr, node.lineno


def _of_class(own: ast.ClassDef, classes: dict[str, list[ast.ClassDef]]) -> set[str]:
    """What the class and its bases in the package define."""
    names, lineage = set[str](), [own]
    for each in lineage:  # it grows
        names |= _defined(each)
        bases = [classes.get(ast.unparse(base).partition("[")[0], []) for base in each.bases]
        names |= _set(each) if all(bases) else _begun(each)
        lineage += [one for found in bases for one in found if one not in lineage]
    return names


def _begun(own: ast.ClassDef) -> set[str]:
    """The attributes of `self` that begin in a class with a base of another library."""
    beginnings = [each for each in own.body if getattr(each, "name", "") in BEGINNINGS]
    return set[str]().union(*map(_set, beginnings))


def _set(scope: ast.AST) -> set[str]:
    """The attributes of `self` that are set in this scope."""
    return {
        node.attr
        for node in ast.walk(scope)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and _is_self(node.value)
    }


def _defined(scope: ast.AST) -> set[str]:
    """Functions, classes and variables of this scope, and words: of __slots__."""
    names = set[str]()
    for node in ast.walk(scope):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
    return names


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in {"self", "cls"}


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC


if __name__ == "__main__":
    sys.exit(main())
