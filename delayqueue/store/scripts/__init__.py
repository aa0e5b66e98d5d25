"""The scripts: one source in two forms, a library of functions and, for stores without functions, single scripts.

Each verb is a file, and its head declares:

-- requires  _job, _tag     the parts that it is built with; `_index` stands for `_zset` or `_wheel`; or a verb that it
                             calls
-- flags  allow-oom          of its function: it works while the store's memory is full; `no-writes`: it only reads
-- waits  changes            for replicas, with this `redis.replicate` or one that includes it; or `never`
-- needs  sync, replicas     do not begin it if `durability` asks for these and they are known to be missing: the
                             server's sync, the replicas that follow it

A verb's file returns the function that does it, which gets the call's arguments (ARGV); of its keys, _keys.lua makes
names. What stands before that is built once: the library builds all parts and verbs at its first call and keeps them,
so a local variable there keeps its value from one call to the next, whatever the bucket or the database, and also if
the call failed: a verb that uses it first sets it, unless it must be remembered (push.lua: `known`). A script is built
again at each call.

What a script must do:

- A job is in exactly one place: a record in `job` (delayed, ready, reserved, buried) or in `ended`.
- Check, then write: a command that Redis refuses (a key of another type, memory full) stops a script where it is, and
  nothing is rolled back. `check_keys` raises before anything has changed; a verb whose items have several jobs checks
  all jobs of an item before its first write.
- What adds comes before what removes, and the record goes last when a job goes: from it inspect.lua finds a job again
  whose verb was stopped half-way.
- Write, then say it: what an answer, a count or an event (`tell`) says is done.
- A verb for many jobs does each by `for_each`: an error is that job's UNAVAILABLE, and the call ends when it has done
  enough. Its results are then those of the first jobs. Each command counts as work by itself, and so does each record
  that is read; what a command does for many elements counts by `count_work` (_call.lua).
- Every range has a LIMIT.
- It returns results (one for each item, or what it has to tell), times (ms for each item) and how many items it did;
  `returns` in its head says what the first two hold. The rest of the answer comes from the state of the call: `arrive`
  what became ready, `wake_at` what is due, `tell` what happened (_call.lua, _job.lua).
- Codes are those of errors.py: OK, INVALID, NOT_FOUND, WRONG_STATE, STALE_RECEIPT, EXISTS, UNAVAILABLE, FULL.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha1
from importlib import resources
from typing import Final, NamedTuple

from delayqueue.domain.job import MAX_ANSWER_BYTES, MAX_DUE_S, USUAL_PRIORITY
from delayqueue.errors import Code

ALLOW_OOM: Final = "allow-oom"
NO_WRITES: Final = "no-writes"
REPLICATE: Final = ("pushes", "changes", "all")  # of redis.replicate; each includes the one before
NEVER: Final = "never"
# what scripts take and tell instead of a topic: domain.job.CALLS. No topic is empty
CALLS_WORD: Final = ""
HEAD: Final = re.compile(r"^-- ([a-z]+)  (.+)$", re.MULTILINE)
# the words that each line of a head can have; None = names of parts
WORDS: Final[Mapping[str, Collection[str] | None]] = {
    "requires": None,
    "flags": (ALLOW_OOM, NO_WRITES),
    "waits": (*REPLICATE, NEVER),
    "needs": ("sync", "replicas"),
}
SCRIPT: Final = """\
{first_write}
{constants}
{parts}
local verbs = {{}}
{function}
local refusal = begin(KEYS, ARGV)
if refusal then return refusal end
return end_call(verbs.{verb}(ARGV))
"""
# What flags are to a function: a store that refuses writes refuses the first one of a script, which changes nothing,
# and with it the call. After one that takes no memory, it allows the others when its memory is full.
FIRST_WRITE: Final = "redis.call('ZADD', KEYS[1] .. ':fence', 'XX', 0, '')"
FIRST_WRITE_WHEN_FULL: Final = "redis.call('ZREM', KEYS[1] .. ':fence', '')"
# Globals, `string` among them, are missing while a library is loaded.
LIBRARY: Final = """\
#!lua name={library}
{constants}
local begin, end_call, verbs

local function build()
{parts}
local verbs = {{}}
{functions}
return begin, end_call, verbs
end

local function register(verb, flags)
  redis.register_function({{
    function_name = '{prefix}' .. verb, flags = flags,
    callback = function(keys, args)
      if not verbs then begin, end_call, verbs = build() end
      return begin(keys, args) or end_call(verbs[verb](args))
    end,
  }})
end
{registrations}
"""


@cache
def read(name: str) -> str:
    """The text of a file, without `.lua`."""
    return resources.files(__name__).joinpath(f"{name}.lua").read_text("utf-8")


class Script(NamedTuple):
    """A verb as EVALSHA calls it."""

    source: str
    sha: str


class ScriptHead(NamedTuple):
    """What a verb's head says; the words are explained above."""

    name: str
    flags: Sequence[str]
    waits: str
    needs: Collection[str]

    @property
    def writes(self) -> bool:
        """Whether it may change something."""
        return NO_WRITES not in self.flags

    @property
    def first_write(self) -> str:
        """The first write of its script, "" = there is none."""
        if not self.writes:
            return ""
        return FIRST_WRITE_WHEN_FULL if ALLOW_OOM in self.flags else FIRST_WRITE


class Library(NamedTuple):
    """All verbs as FUNCTION LOAD takes them."""

    name: str
    source: str


@dataclass(frozen=True)
class Scripts:
    """All verbs, for `zset` or for `wheel` with `wheel_slots` slots an hour.

    `read` returns the text of a file: tests pass their own.
    """

    scheduler: str = "zset"
    wheel_slots: int = 0
    read: Callable[[str], str] = read

    @cached_property
    def verbs(self) -> Mapping[str, ScriptHead]:
        """All verbs by name, sorted. Raises ValueError if a head lacks something, or has something unknown."""
        files = (path.name for path in resources.files(__name__).iterdir())
        names = sorted(name[:-4] for name in files if re.fullmatch(r"[a-z]\w*\.lua", name))
        return {name: self._verb(name) for name in names}

    def script(self, verb: str) -> Script:
        """A verb as a script, after all that it requires."""
        source = SCRIPT.format(
            constants=self._constants,
            parts=self._texts(
                dict.fromkeys(
                    part
                    for each in (*self._called(verb), verb)
                    for part in self._required[each]
                    if part in self._shared
                )
            ),
            function="\n".join(map(self._function, (*self._called(verb), verb))),
            first_write=self.verbs[verb].first_write,
            verb=verb,
        )
        return Script(source, _sha(source))

    @property
    def family(self) -> str:
        """The start of the names of libraries for this scheduler, whatever their source."""
        return f"delayqueue_{self.scheduler}{self.wheel_slots or ''}_"

    @cached_property
    def library(self) -> Library:
        """All verbs as functions. Another source gets another name, so that two versions can work side by side."""
        name = self.family + self._hash
        return Library(name, self._library_source(name, self._prefix))

    def function(self, verb: str) -> str:
        """The name of a verb's function in the library."""
        return self._prefix + verb

    @property
    def _prefix(self) -> str:
        return f"delayqueue_{self._hash}_"

    @cached_property
    def _hash(self) -> str:
        return _sha(self._library_source("", ""))[:12]

    @property
    def _constants(self) -> str:
        values = {
            "WHEEL_SLOTS": self.wheel_slots,
            "READ_LIMIT_BYTES": MAX_ANSWER_BYTES,
            "USUAL_PRIORITY": USUAL_PRIORITY,
            "MOST_DUE_MS": MAX_DUE_S * 1000,
            "CALLS": repr(CALLS_WORD),
            "OK": Code.OK,
            "INVALID": Code.INVALID,
            "NOT_FOUND": Code.NO_SUCH_JOB,
            "WRONG_STATE": Code.WRONG_STATE,
            "STALE_RECEIPT": Code.STALE_RECEIPT,
            "EXISTS": Code.JOB_EXISTS,
            "UNAVAILABLE": Code.UNAVAILABLE,
            "FULL": Code.TOPIC_FULL,
        }
        return f"local {', '.join(values)} = {', '.join(map(str, values.values()))}"

    def _library_source(self, name: str, prefix: str) -> str:
        flags = {name: ", ".join(map(repr, verb.flags)) for name, verb in self.verbs.items()}
        return LIBRARY.format(
            library=name,
            prefix=prefix,
            constants=self._constants,
            parts=self._texts(self._shared),
            functions="\n".join(map(self._function, self.verbs)),
            registrations="\n".join(
                f"register('{verb}', {{{flags[verb]}}})" for verb in self.verbs
            ),
        )

    def _function(self, verb: str) -> str:
        own = [part for part in self._required[verb] if part not in self._shared]
        return f"verbs.{verb} = (function()\n{self._texts([*own, verb])}\nend)()"

    @cached_property
    def _shared(self) -> Collection[str]:
        """The parts that several verbs require, each after those that it requires itself."""
        uses = Counter(part for parts in self._required.values() for part in parts)
        return dict.fromkeys(part for part in uses if uses[part] > 1)

    @cached_property
    def _required(self) -> Mapping[str, Sequence[str]]:
        """The parts that each verb requires, each after those that it requires itself."""
        return {verb: list(self._parts(verb)) for verb in self.verbs}

    def _called(self, verb: str) -> Sequence[str]:
        """The verbs that a verb calls, as `verbs.NAME`."""
        return [
            each for each in _head(verb, self.read(verb)).get("requires", ()) if each in self.verbs
        ]

    def _parts(self, name: str) -> dict[str, None]:
        parts: dict[str, None] = {}
        for part in _head(name, self.read(name)).get("requires", ()):
            if part in self.verbs:
                continue
            file = part.replace("_index", f"_{self.scheduler}")
            parts |= self._parts(file) | {file: None}
        return parts

    def _verb(self, name: str) -> ScriptHead:
        head = _head(name, self.read(name))
        flags = head.get("flags", [])
        waits = head.get("waits", [])
        if len(waits) != (NO_WRITES not in flags):
            raise ValueError(
                f"{name}.lua: a verb that writes names what it waits for, like `-- waits  pushes`, "
                f"and one with the flag {NO_WRITES} does not"
            )
        return ScriptHead(name, flags, "".join(waits) or NEVER, head.get("needs", []))

    def _texts(self, names: Iterable[str]) -> str:
        return "\n".join(map(self.read, names))


@cache
def _head(name: str, source: str) -> Mapping[str, list[str]]:
    """The words of each line of a head. Raises ValueError if a line is unknown."""
    head: dict[str, list[str]] = {}
    for line, text in HEAD.findall(source):
        head[line] = text.replace(",", " ").split()
        known = WORDS.get(line, ())
        unknown = [] if known is None else [word for word in head[line] if word not in known]
        if unknown or line not in WORDS:
            raise ValueError(f"{name}.lua: unknown line `-- {line}  {text}`")
    return head


def _sha(source: str) -> str:
    return sha1(source.encode(), usedforsecurity=False).hexdigest()


ZSET: Final = Scripts()
