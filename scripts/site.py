"""A hook of mkdocs: what the site has beyond the pages of docs/, which a repository shows as they are.

- Files outside docs/ that the pages link to are in the site, too. README.md, an example, delay-queue.conf: each
  becomes a page under repository/, Markdown as it is and all else as a listing. So the same link works in both.
- English and Chinese pages have a navigation each, in their language, and a switch to the same page in the other one.
- On the front page, programs that follow each other under a bold name are tabs.
"""

import posixpath
import re
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page

DOCS: Final = "docs/"
BESIDE: Final = "repository/"
# who searches the site looks for a page, and long listings come first
UNSEARCHED: Final = "---\nsearch: {exclude: true}\n---\n"
LINK: Final = re.compile(r"(?<=\]\()(?!\w+:|#|/)([^)#\s]+)")
CHINESE: Final = ".zh-CN.md"
FRONT: Final = ("index.md", f"index{CHINESE}")
# the switch above each page would be the second one
TWIN: Final = re.compile(r"^\[(?:English|中文)\]\(.*\)\n\n", re.MULTILINE)
NAMED_PROGRAM: Final = re.compile(r"^\*\*([^*\n]+)\*\*\n\n(```.*?^```)\n", re.MULTILINE | re.DOTALL)
LANGUAGES: Final = {
    ".php": "php",
    ".py": "python",
    ".mjs": "js",
    ".go": "go",
    ".java": "java",
    ".yml": "yaml",
    ".yaml": "yaml",
    ".conf": "ini",
    ".json": "json",
    ".service": "ini",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add every file of the repository that a page links to, and the files that those link to."""
    root = Path(config.config_file_path).parent
    pages = [DOCS + file.src_uri for file in files.documentation_pages()]
    known = set(pages)
    while pages:
        for target in _targets(root, pages.pop()):
            if target.startswith(DOCS) or target in known:
                continue
            known.add(target)
            files.append(File.generated(config, _place(target), content=_content(root, target)))
            if target.endswith(".md"):
                pages.append(target)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point the links of a page to where their files are in the site; on the front page, make tabs of programs."""
    del config
    markdown = TWIN.sub("", markdown, count=1)
    if page.file.src_uri in FRONT:
        page.meta["hide"] = ["navigation", "toc"]
        markdown = NAMED_PROGRAM.sub(_tab, markdown)
    origin, here = _origin(page.file.src_uri), posixpath.dirname(page.file.src_uri)

    def moved(link: re.Match[str]) -> str:
        place = _place(_target(origin, link[0]))
        return posixpath.relpath(place, here or ".") if files.get_file_from_path(place) else link[0]

    return LINK.sub(moved, markdown)


def on_page_context(
    context: dict[str, Any], page: Page, config: MkDocsConfig, nav: Navigation
) -> dict[str, Any]:
    """Give a page the navigation and the words of its language, and the way to the other one."""
    name = page.file.src_uri
    is_chinese = name.endswith(CHINESE)
    *english, chinese = nav.items
    items = chinese.children if isinstance(chinese, Section) and is_chinese else english
    context["nav"] = Navigation(items, nav.pages)
    context["nav"].homepage = next(
        one for one in nav.pages if one.file.src_uri == FRONT[is_chinese]
    )
    config.theme["language"] = "zh" if is_chinese else "en"
    there = {one.file.src_uri: one.url for one in nav.pages}
    plain = name.replace(CHINESE, ".md")
    ways = [
        ("English", "en", plain, FRONT[0]),
        ("中文", "zh", plain.replace(".md", CHINESE), FRONT[1]),
    ]
    config.extra["alternate"] = [
        {"name": language, "lang": code, "link": there.get(path) or there[front]}
        for language, code, path, front in ways
    ]
    return context


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Say which Chinese it is: browsers choose glyphs by it, screen readers a voice."""
    del page, config
    return output.replace('<html lang="zh"', '<html lang="zh-CN"', 1)


def _tab(program: re.Match[str]) -> str:
    """A tab with the program and its name."""
    return f'=== "{program[1]}"\n\n' + "".join(f"    {line}\n" for line in program[2].splitlines())


def _targets(root: Path, path: str) -> list[str]:
    """The files of the repository that a page links to."""
    named = (_target(path, link) for link in LINK.findall((root / path).read_text("utf-8")))
    return [target for target in named if (root / target).is_file()]


def _target(origin: str, link: str) -> str:
    """The path in the repository that a link of the page at `origin` leads to; for a folder, its README.md."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), link))
    return f"{path}/README.md" if link.endswith("/") else path


def _place(path: str) -> str:
    """Where a file of the repository is in the site."""
    if path.startswith(DOCS):
        return path.removeprefix(DOCS)
    return BESIDE + (path if path.endswith(".md") else f"{path}.md")


def _origin(place: str) -> str:
    """The Markdown file of the repository that a page is made from."""
    return place.removeprefix(BESIDE) if place.startswith(BESIDE) else DOCS + place


def _content(root: Path, path: str) -> str:
    text = (root / path).read_text("utf-8")
    if path.endswith(".md"):
        return text
    language = LANGUAGES.get(posixpath.splitext(path)[1], "text")
    return f"{UNSEARCHED}# {path}\n\n````{language}\n{text}````\n"
