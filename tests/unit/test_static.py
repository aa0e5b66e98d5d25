"""The files of the page at /admin."""

import hashlib
import json
import re
from pathlib import Path

import delayqueue.web
from delayqueue.errors import Code, QueueError, Text

STATIC = Path(delayqueue.web.__file__).parent / "static" / "admin"
AXE = Path(__file__).parents[1] / "browser" / "axe"
SCRIPTS = {path: path.read_text("utf-8") for path in (STATIC / "js").rglob("*.js")}
TEXTS = re.findall(
    r'^  (\w+): \[("(?:[^"\\]|\\.)*"), ("(?:[^"\\]|\\.)*")\],$',
    SCRIPTS[STATIC / "js" / "i18n.js"],
    re.MULTILINE,
)


def test_what_others_wrote_is_as_they_published_it() -> None:
    for folder in (*filter(Path.is_dir, (STATIC / "vendor").iterdir()), AXE):
        sums = (folder / "SHA256SUMS").read_text()
        found = {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()
        }
        del found["LICENSE"], found["SHA256SUMS"]
        assert found == {name: digest for digest, name in map(str.split, sums.splitlines())}


def test_every_text_that_is_used_exists_in_both_languages_and_every_text_is_used() -> None:
    names = {name for name, _, _ in TEXTS}
    used = {name for text in SCRIPTS.values() for name in re.findall(r'\bt\("(\w+)"', text)}
    assert used <= names
    source = "".join(SCRIPTS.values())
    assert {name for name in names if f'"{name}"' not in source} <= STATES_OF_JOBS | CODES
    for _, english, chinese in TEXTS:
        assert set(re.findall(r"\{\d\}", english)) == set(re.findall(r"\{\d\}", chinese))


# texts that are named after words of the server
STATES_OF_JOBS = {"cancelled", "dropped", "expired"}
CODES = {f"code_{code:d}" for code in Code if code}


def test_the_page_says_what_a_code_means_in_the_servers_words() -> None:
    said = {
        name: Text(json.loads(chinese), json.loads(english)) for name, english, chinese in TEXTS
    }
    assert {each: said[each] for each in CODES} == {
        f"code_{error.code:d}": error.default for error in QueueError.__subclasses__()
    }


def test_no_script_writes_markup() -> None:
    for path, text in SCRIPTS.items():
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", text), path
