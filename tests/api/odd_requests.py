"""Requests as clients send them, and as no client should: one after the other, cut off, with a byte changed."""

from typing import Final

from hypothesis import strategies as st

ID: Final = b"######"  # stands for an id, which must have the same length
BODIES: Final = {
    "/push": b'{"topic":"ways","id":"######","ttr":60,"delay":3600,"body":"x"}',
    "/get": b'{"id":"######"}',
    "/delete": b'{"id":"######"}',
    "/pop": b'{"topic":"nothing","timeout":0}',
    "/finish": b'{"id":"######"}',
}
ODD_TARGETS: Final = [
    *(b"/get?", b"/get?a=1", b"/push?a=1#b", b"/%67et", b"/pu%73h", b"/get%20", b"/get%00"),
    *(b"/get/", b"//get", b"/./get", b"/x/../get", b"/GET", b"/nowhere", b"/", b"*", b"get", b""),
    *(b"http://x/get", b"http://elsewhere/get", b"x:80", b"/get\xc3\xb6", b"/g\xff", b"/get;a"),
    *(b"/" + b"a" * 4000, b"/" + b"a" * 9000, b"/get /get", b"/healthz", b"/admin", b"/get\t"),
]
ODD_METHODS: Final = [
    *(b"GET", b"HEAD", b"OPTIONS", b"PUT", b"PATCH", b"DELETE", b"TRACE", b"CONNECT", b"PRI"),
    *(b"post", b"POSTS", b"P OST", b"", b" POST", b"\r\nPOST", b"\nPOST", b"M-SEARCH", b"PO\0ST"),
]
ODD_VERSIONS: Final = [
    *(b"HTTP/1.0", b"HTTP/1.2", b"HTTP/2.0", b"HTTP/0.9", b"HTTP/1.10", b"HTTP/01.1", b"http/1.1"),
    *(b"HTTP/1.1 ", b" HTTP/1.1", b"HTTP/1.1\t", b"", b"HTTP/1", b"HTTP/1,1", b"HTTPS/1.1"),
]
ODD_HOSTS: Final = [
    *([], [b"Host: x", b"Host: x"], [b"Host: x", b"host: y"], [b"Host:"], [b"Host: a b"]),
    *([b"Host: x:99999"], [b"Host: [::1"], [b"HOST: x"], [b"Host: x/y"], [b"Host: a,b"]),
    *([b"Host: user@x"], [b"Host: \xff"], [b"Host : x"], [b"Host: x\0"]),
]
ODD_CONNECTIONS: Final = [
    *(b"close", b"Close", b"CLOSE", b"keep-alive", b"Keep-Alive", b"close, keep-alive"),
    *(b"keep-alive, close", b"upgrade", b"nonsense", b"", b"close,", b" close ", b"clos", b"TE"),
    *(
        b"Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__",
        b"upgrade, x",
    ),
    *(
        b"Upgrade\r\nUpgrade: h2c",
        b"upgrade, close\r\nUpgrade: h2c",
        b"Upgrade\r\nUpgrade: websocket",
    ),
]
ODD_HEADERS: Final = [
    *(b"Expect: 100-continue", b"Expect: 100-Continue", b"Expect: nothing", b"Expect:"),
    *(b"X: a\0b", b"X: a\rb", b"X: a\nb", b"X: a\r\n b", b"X: a\r\n\tb", b"X:\r\n b", b" X: a"),
    *(b"X: \xc3\xb6", b"X: \xff", b"X\xff: a", b"X : a", b"X", b": a", b"", b"X:", b"X: \t a \t"),
    *(b"X: \x7f", b"X: \x1b", b"X:a", b"(X): a", b'"X": a', b"X Y: a", b"X\0: a", b"X\r: a"),
    *(b"X: " + b"a" * 4000, b"X: " + b"a" * 9000, b"X" * 4000 + b": a", b"X" * 9000 + b": a"),
    *(b"\r\n".join(b"X%d: a" % n for n in range(count)) for count in (20, 124, 125, 126, 127, 200)),
    *(b"X-Request-Id: abc", b"X-Request-Id: a b", b"X-Request-Id: a\r\nX-Request-Id: b"),
    *(b"Accept-Language: en", b"Accept-Language: zh\r\nAccept-Language: en", b"Accept-Language:"),
    *(b"Content-Type: text/plain", b"Content-Type: ", b"Accept-Encoding: gzip", b"Cookie: a=b"),
    *(b"Content-Encoding: gzip", b"Content-Encoding: identity", b"Content-Encoding:"),
    *(b"Origin: http://x", b"Origin: http://elsewhere", b"Origin: null", b"Sec-Fetch-Site: none"),
    *(b"Sec-Fetch-Site: cross-site", b"Authorization: Bearer nothing", b"Authorization: x"),
    *(b"Upgrade: websocket", b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__", b"Upgrade:"),
    *(b"Connection: Upgrade\r\nUpgrade: h2c", b"Connection: Upgrade\r\nUpgrade: websocket"),
    *(b"TE: trailers", b"TE:", b"Trailer: X", b"Via: 1.1 a", b"Range: bytes=0-1", b"Keep-Alive: 5"),
    *(
        b"Content_Length: 3",
        b"Transfer_Encoding: chunked",
        b"Content-Length-: 3",
        b"traceparent: x",
    ),
    *(
        b"Sec-WebSocket-Key: x",
        b"Proxy-Connection: close",
        b"If-None-Match: *",
        b"Forwarded: for=x",
        b"X-Forwarded-For: ::1",
    ),
]
RIGHT: Final = b"Content-Length: {n}"
CHUNKED: Final = b"Transfer-Encoding: chunked"
# {n} is the right length, {m} a wrong one
ODD_LENGTHS: Final = [
    *(
        [],
        [b"content-length: {n}"],
        [b"CONTENT-LENGTH:{n}"],
        [b"Content-Length: 0{n}"],
        [RIGHT, RIGHT],
    ),
    *([b"Content-Length: {m}"], [RIGHT, b"Content-Length: {m}"], [b"Content-Length: {m}", RIGHT]),
    *([b"Content-Length: {n}, {n}"], [b"Content-Length: {n}, {m}"], [b"Content-Length: +{n}"]),
    *([b"Content-Length: -{n}"], [b"Content-Length: 0x{n}"], [b"Content-Length: {n} "]),
    *([b"Content-Length:"], [b"Content-Length: {n}\r\n 0"], [b"Content-Length : {n}"]),
    *([b"Content-Length: {n};"], [b"Content-Length: \xb2"], [b"Content-Length: {n}\x0b"]),
    *([b"Content-Length: 1_0"], [b"Content-Length: {n}.0"], [b"Content-Length: {n}\0"]),
    *([b"Content-Length: 99999999999999999999"], [b"Content-Length: 9999999999"]),
    *([RIGHT, CHUNKED], [CHUNKED, RIGHT], [RIGHT, b"Transfer-Encoding: identity"]),
    *([RIGHT, b"Transfer-Encoding:"], [RIGHT, b"Transfer-Encoding: xchunked"]),
    *([RIGHT, b"Transfer-Encoding : chunked"], [RIGHT, b" Transfer-Encoding: chunked"]),
    *(
        [RIGHT, b"X: a\r\n Transfer-Encoding: chunked"],
        [RIGHT, b"X: a\nTransfer-Encoding: chunked"],
    ),
    *([RIGHT, b"Transfer-Encoding\0: chunked"], [RIGHT, b"Transfer-Encoding: \x0bchunked"]),
    *([RIGHT, b"X: a\rTransfer-Encoding: chunked"], [b"X: a\rContent-Length: {m}", RIGHT]),
    *([b"Content-Length: {m}\n" + RIGHT], [b"X: a\nContent-Length: {m}", RIGHT]),
]
CHUNKINGS: Final = [
    *([CHUNKED], [b"transfer-encoding: Chunked"], [b"Transfer-Encoding: chunked, chunked"]),
    *([b"Transfer-Encoding: gzip, chunked"], [b"Transfer-Encoding: chunked, identity"]),
    *([CHUNKED, CHUNKED], [CHUNKED, b"Trailer: X"], [b"Transfer-Encoding: \tchunked"]),
]
ODD_BODIES: Final = [
    *(b"", b"{}", b"[]", b"nonsense", b"{", b'{"id":', b"null", b"\xff\xfe", b"\0", b" " * 3000),
    *(
        b"\xef\xbb\xbf{}",
        b'{"id":"######"}\r\n',
        b'{"id":"######"} trailing',
        b"GET /healthz HTTP/1.1",
    ),
    *(b"[" * 500, b'{"id":"' + b"i" * 70_000 + b'"}', b"POST /get HTTP/1.1\r\nHost: x\r\n\r\n"),
]
BETWEEN: Final = [b"\r\n", b"\n", b"\r\n\r\n", b"\0", b" ", b"x", b"\r", b"\x16\x03\x01"]
CHANGES: Final = [b"\r", b"\n", b"\0", b" ", b"\t", b":", b",", b"\x0b", b"\x80", b"\r\n", b""]
CHUNK_ENDS: Final = [
    *(b"0\r\n\r\n", b"0\r\n\r\n", b"0\r\nX: a\r\n\r\n", b"0;a=b\r\n\r\n", b"0\n\n", b"00\r\n\r\n"),
    *(
        b"",
        b"-1\r\n\r\n",
        b"0\r\n",
        b"ffffffffffffffff1\r\n",
        b"0x0\r\n\r\n",
        b" 0\r\n\r\n",
        b"g\r\n",
    ),
]
RESPECTS: Final = (
    *("body", "target", "method", "version", "host", "connection"),
    *("header", "chunks", "length"),
)
OFF_BY: Final = (-3, -1, 1, 2, 30)
SELDOM: Final = st.sampled_from([False] * 5 + [True])
BYTE_BY_BYTE: Final = 1500  # more than this are sent in larger pieces


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """One request. Half of them are plain, the others are odd in one or two ways."""
    odd = draw(st.sets(st.sampled_from(RESPECTS), min_size=1, max_size=2) | st.just(set()))
    path = draw(st.sampled_from(list(BODIES)))
    body = draw(st.sampled_from(ODD_BODIES)) if "body" in odd else BODIES[path]
    target = draw(st.sampled_from(ODD_TARGETS)) if "target" in odd else path.encode()
    method = draw(st.sampled_from(ODD_METHODS)) if "method" in odd else b"POST"
    version = draw(st.sampled_from(ODD_VERSIONS)) if "version" in odd else b"HTTP/1.1"
    lines = [b" ".join([method, target, version])]
    lines += draw(st.sampled_from(ODD_HOSTS)) if "host" in odd else [b"Host: x"]
    if "connection" in odd:
        lines.append(b"Connection: " + draw(st.sampled_from(ODD_CONNECTIONS)))
    if "header" in odd:
        lines += draw(st.lists(st.sampled_from(ODD_HEADERS), min_size=1, max_size=2))
    if "chunks" in odd:
        body = _in_chunks(body, draw(st.integers(1, 40)), draw(st.sampled_from(CHUNK_ENDS)))
        lines += draw(st.sampled_from(CHUNKINGS))
    if "length" in odd:
        right, wrong = b"%d" % len(body), b"%d" % max(0, len(body) + draw(st.sampled_from(OFF_BY)))
        given = draw(st.sampled_from(ODD_LENGTHS))
        lines += [line.replace(b"{n}", right).replace(b"{m}", wrong) for line in given]
    elif "chunks" not in odd:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join([*lines, b"", body])


def _in_chunks(body: bytes, size: int, end: bytes) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces[:100]) + end


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """What a client sends on one connection."""
    sent = b""
    for request in draw(st.lists(requests(), min_size=1, max_size=4)):
        sent += request
        if draw(SELDOM):
            sent += draw(st.sampled_from(BETWEEN))
    if draw(SELDOM):
        at = draw(st.integers(0, len(sent)))
        sent = sent[:at] + draw(st.sampled_from(CHANGES)) + sent[at + 1 :]
    if draw(SELDOM):
        sent = sent[: draw(st.integers(1, len(sent)))]
    return sent


@st.composite
def pieces(draw: st.DrawFn, sent: bytes) -> list[bytes]:
    """The same bytes as they may arrive: at once, in some pieces, byte by byte."""
    if draw(SELDOM) and len(sent) <= BYTE_BY_BYTE:
        return [sent[at : at + 1] for at in range(len(sent))]
    cuts = sorted(draw(st.sets(st.integers(0, len(sent)), max_size=8)))
    return [sent[a:b] for a, b in zip([0, *cuts], [*cuts, len(sent)], strict=True) if a < b]
