"""What a type checker tells those who use the clients, the worker and the test kit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.processes import REPOSITORY

PUBLIC: Final = tuple(
    f"delayqueue.{name}." for name in ("client", "errors", "job", "testing", "worker")
)
CHECK_S: Final = 60.0


def test_pyright_knows_the_type_of_everything_that_can_be_imported() -> None:
    pytest.importorskip("basedpyright")
    checked = subprocess.run(
        [
            *(Path(sys.executable).with_name("basedpyright"), "--pythonpath", sys.executable),
            *("--verifytypes", "delayqueue", "--ignoreexternal", "--outputjson"),
        ],
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        timeout=CHECK_S,
        check=False,  # it speaks of the server's modules, too
    )
    symbols = json.loads(checked.stdout)["typeCompleteness"]["symbols"]
    ours = [
        symbol
        for symbol in symbols
        if symbol["name"].startswith(PUBLIC) and not symbol["name"].endswith(".log")
    ]
    assert "delayqueue.client.verbs.Verbs.push" in {symbol["name"] for symbol in ours}
    assert [
        symbol["name"] for symbol in ours if symbol["isTypeAmbiguous"] or not symbol["isTypeKnown"]
    ] == []
