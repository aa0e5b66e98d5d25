"""The check of `make lint` for private attributes of other libraries, on small packages."""

from pathlib import Path

import pytest

from scripts.private import LEFT, PACKAGE, complaints


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("def f(x): return x._writer", ["_writer"]),
        ("def f(x): x._parser = None", ["_parser"]),
        ("class A(lib.B):\n def f(self): return self._waiter", ["_waiter"]),
        ("class A(lib.B):\n def f(self): self._parser = None", ["_parser"]),
        (
            "class A(lib.B):\n def __init__(self): self._mine = 1\n def f(self): return self._mine",
            [],
        ),
        ("class A(lib.B):\n __slots__ = ('_mine',)\n def f(self): self._mine = 1", []),
        (
            "class A:\n def f(self): self._mine = 1\nclass B(A):\n def g(self): return self._mine",
            [],
        ),
        ("class A:\n def f(self, other): self._n = other._n", []),
        ("def f(pair): return pair._replace(a=1).__class__", []),
    ],
    ids=[
        "read",
        "written",
        "read in a subclass",
        "written in a subclass",
        "our own in a subclass",
        "our own slot in a subclass",
        "our own, of a base",
        "our own, of another object",
        "public with an underscore",
    ],
)
def test_what_is_private_to_another_library_is_found(
    code: str, found: list[str], tmp_path: Path
) -> None:
    (tmp_path / "code.py").write_text(code, encoding="utf-8")
    said = complaints(tmp_path, {})
    assert [one.split(": ")[1].split(" is ")[0] for one in said] == found


def test_what_is_left_may_only_shrink(tmp_path: Path) -> None:
    assert complaints(PACKAGE, LEFT) == []
    (tmp_path / "code.py").write_text("def f(x): return x._a", encoding="utf-8")
    assert complaints(tmp_path, {("code.py", "_a"): "why"}) == []
    [stale] = complaints(tmp_path, {("code.py", "_a"): "why", ("code.py", "_b"): "why"})
    assert stale.startswith("code.py: _b is not used any more")
