"""Odd and hostile bytes."""

from typing import Final

BIG: Final = b"y" * 70_000
NAME: Final = b"a" * 200
# Bytes that are sent at once and end the client's side; and a word on what is odd about them.
ODD: Final[dict[str, bytes]] = {
    "an empty line": b"\r\nlist-tube-used\r\n",
    "an unknown command": b"frobnicate 1\r\nlist-tube-used\r\n",
    "capitals": b"PUT 1 2 3 4\r\nUSE a\r\n",
    "nothing after the word": b"put\r\nput \r\ndelete\r\nbury 1\r\nkick\r\nreserve-with-timeout\r\nuse \r\n",
    "too much after the word": b"reserve 5\r\nlist-tubes x\r\nstats x\r\npeek-ready 1\r\nrelease 1 1 1 1\r\n"
    b"use a b\r\n",
    "a word that goes on": b"reservexyz\r\nstatsxyz\r\npeek-readyx\r\nlist-tubesx\r\n",
    "quit goes on": b"quitxyz\r\nlist-tube-used\r\n",
    "spaces before numbers": b"delete    999\r\nput   1   2   3   0\r\n\r\n",
    "numbers that are none": b"delete 1x\r\ndelete x\r\nput a 0 1 1\r\nput -1 0 1 1\r\nput 1 2 3\r\nkick x\r\n"
    b"touch -1\r\n",
    "numbers that are too large": b"put 4294967296 0 1 1\r\nput 0 4294967296 1 1\r\nput 0 0 4294967296 1\r\n"
    b"put 0 0 1 4294967296\r\nrelease 1 4294967296 0\r\ndelete 18446744073709551616\r\npause-tube a 4294967296\r\n",
    "the largest numbers": b"put 4294967295 4294967295 4294967295 1\r\na\r\ndelete 18446744073709551615\r\n"
    b"release 18446744073709551615 4294967295 4294967295\r\npeek 9007199254740993\r\n",
    "kick as C reads numbers": b"kick 0\r\nkick -1\r\nkick +3\r\nkick 3x\r\nkick  4\r\nkick 18446744073709551615\r\n"
    b"kick 18446744073709551616\r\nkick 4294967296\r\n",
    "ids of nothing": b"touch 77777\r\nrelease 77777 1 1\r\nbury 77777 1\r\nkick-job 77777\r\npeek 77777\r\n"
    b"reserve-job 77777\r\nstats-job 77777\r\ndelete 77777\r\ndelete 0\r\ndelete 0077777\r\n",
    "tubes of nothing": b"stats-tube nix\r\npause-tube nix 1\r\npause-tube nix\r\npause-tubenix 1\r\nstats-tube\r\n",
    "names": b"use -a\r\nuse a-\r\nuse a+/;.$_()Z9\r\nuse \xc3\xa4\r\nuse a:b\r\nuse a,b\r\nwatch a b\r\nignore -\r\n",
    "long names": b"use %b\r\nuse %ba\r\nwatch %b\r\nwatch %ba\r\nstats-tube %ba\r\n"
    % ((NAME,) * 5),
    "the longest line": b"pause-tube %b 4294967295\r\n" % NAME,
    "a line of 224 bytes": b"x" * 222 + b"\r\nlist-tube-used\r\n",
    "a line of 225 bytes": b"x" * 223 + b"\r\nlist-tube-used\r\nlist-tube-used\r\n",
    "a line of 226 bytes": b"x" * 224 + b"\r\nlist-tube-used\r\nlist-tube-used\r\n",
    "a very long line": b"x" * 100_000 + b"\r\nlist-tube-used\r\n",
    "a long put": b"put 0 0 1 " + b"0" * 300 + b"1\r\na\r\nlist-tube-used\r\n",
    "CR in a line": b"use a\rb\r\nlist-tube-used\r\nlist-tube-used\r\n"
    + b"z" * 300
    + b"\r\nlist-tube-used\r\n",
    "CR before a line": b"\rlist-tube-used\r\n" + b"z" * 200 + b"\r\nuse b\r\nlist-tube-used\r\n",
    "LF alone": b"list-tube-used\nlist-tube-used\r\nlist-tube-used\r\n",
    "NULs": b"use a\0b\r\nput 0 0 1 1\0\r\n\0\r\nlist-tube-used\r\n",
    "a NUL in a put that is too big": b"put 0 0 1 70000\0\r\nlist-tube-used\r\n",
    "a body that is too long": b"put 0 0 1 3\r\nabcde\r\nlist-tube-used\r\n",
    "a body without its end": b"put 0 0 1 3\r\nabc\rxlist-tube-used\r\n",
    "a body that never comes": b"put 0 0 1 3\r\nab",
    "half a line": b"list-tube-used\r\nlist-tube-us",
    "a body that looks like commands": b"put 9 9 9 12\r\nquit\r\nquit\r\n\r\nlist-tube-used\r\n",
    "too big": b"put 0 0 1 70000\r\n" + BIG + b"\r\nlist-tube-used\r\n",
    "too big and with more": b"put 0 0 1 70000 x\r\n" + BIG + b"\r\nlist-tube-used\r\n",
    "too big and without its end": b"put 0 0 1 70000\r\n" + BIG + b"xxlist-tube-used\r\n",
    "too big and never there": b"put 0 0 1 4294967295\r\n" + BIG,
    "one byte too big": b"put 0 0 1 65536\r\n" + BIG[:65536] + b"\r\nlist-tube-used\r\n",
    "garbage after a put": b"put 1 2 3 4x\r\nabcd\r\nlist-tube-used\r\n",
    "the end while it waits": b"reserve\r\n",
    "the end while it waits, twice": b"watch a\r\nreserve\r\nreserve\r\nlist-tube-used\r\n",
    "no timeout": b"reserve-with-timeout 0\r\nreserve-with-timeout 0 x\r\n",
    "the only tube": b"ignore default\r\nignore nix\r\nwatch a\r\nwatch a\r\nignore default\r\nignore a\r\n"
    b"list-tubes-watched\r\n",
    "quit": b"use a\r\nquit\r\nlist-tube-used\r\n",
}
