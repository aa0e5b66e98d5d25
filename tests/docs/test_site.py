"""The site that `make docs` builds: no warnings, no dead links, and it needs no other host."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pytest

from tests.processes import REPOSITORY

BUILD_S: Final = 600
# what a browser fetches by itself
FETCHED: Final = re.compile(
    r'<(?:script|img|iframe|source)[^>]* src="([^"]+)"|<link [^>]*href="([^"]+)"'
)
LINK: Final = re.compile(r'<a [^>]*href="([^"#]*)(?:#([^"]*))?"')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(built)],
        cwd=REPOSITORY,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=BUILD_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return built


def test_it_needs_no_other_host(site: Path) -> None:
    for page in site.rglob("*.html"):
        fetched = ["".join(parts) for parts in FETCHED.findall(page.read_text("utf-8"))]
        assert fetched
        assert not [url for url in fetched if re.match(r"(https?:)?//", url)], page


def test_every_link_leads_somewhere(site: Path) -> None:
    pages = {page: page.read_text("utf-8") for page in site.rglob("*.html")}
    names = {page: set(re.findall(r' id="([^"]+)"', text)) for page, text in pages.items()}
    for page, text in pages.items():
        for path, anchor in LINK.findall(text):
            if re.match(r"\w+:", path) or page.name == "404.html":
                continue
            target = (page.parent / unquote(path)).resolve() if path else page
            assert target.exists(), f"{page}: {path}"
            if anchor and target in names:
                assert unquote(anchor) in names[target], f"{page}: {path}#{anchor}"


def test_the_search_finds_pages_and_no_listings(site: Path) -> None:
    found = {
        entry["location"].partition("#")[0]
        for entry in json.loads((site / "search/search_index.json").read_text("utf-8"))["docs"]
    }
    listings = {
        path
        for path in found
        if path.startswith("repository/")
        and "." in path.removesuffix(".html").removesuffix(".zh-CN")
    }
    assert {"tutorial.html", "howto/php.zh-CN.html", "repository/CONTRIBUTING.html"} <= found
    assert not listings


def test_a_chinese_page_says_that_it_is(site: Path) -> None:
    assert '<html lang="zh-CN"' in (site / "tutorial.zh-CN.html").read_text("utf-8")
    assert '<html lang="en"' in (site / "tutorial.html").read_text("utf-8")


def test_each_language_leads_to_the_other(site: Path) -> None:
    for name in ("runbook.html", "runbook.zh-CN.html"):
        text = (site / name).read_text("utf-8")
        assert re.search(r'href="runbook.html" hreflang="en" class="md-select__link"', text)
        assert re.search(r'href="runbook.zh-CN.html" hreflang="zh" class="md-select__link"', text)
