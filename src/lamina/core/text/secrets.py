"""Secrets of well-known kinds in a text, and the text without them.

Laws: the same text gives the same findings and the same redacted text. What stands in place of a
secret says its kind and nothing else of it: no digest that could be tried against a list. Text that
was redacted holds no secrets. A part of a text is judged as a part of it: half a key is a secret
where the whole one is. Time grows with the length of the text.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.text.characters import splice
from lamina.core.text.secret_kinds import SECRET_KINDS, is_placeholder
from lamina.core.values.item import Excerpt


class SecretFinding(Struct, frozen=True, kw_only=True):
    """A secret in a text: its kind, and where it stands."""

    kind: str
    start: int
    end: int


MOST_LOOKS = 8
# Most hints hold a sign that is rare in what people type: without it none of them is looked for.
_SIGNS = ("-", "_", ".", ":", "=", "")
_HINTS = {
    sign: [
        (hint, place)
        for place, kind in enumerate(SECRET_KINDS)
        for hint in kind.hints
        if sign == next(filter(hint.__contains__, _SIGNS))
    ]
    for sign in _SIGNS
}


def find_secrets(text: str) -> tuple[SecretFinding, ...]:
    """The secrets in `text`, in order; none overlaps another."""
    findings: tuple[SecretFinding, ...] = ()
    rest = text
    # One that touches another is recognised only once the other is out of its way.
    for _ in range(MOST_LOOKS):
        more = _find(rest)
        if not more:
            break
        findings = _without_overlaps([*findings, *more])
        blanks = ((f.start, f.end, "[" + " " * (f.end - f.start - 2) + "]") for f in more)
        rest = splice(rest, blanks)
    return findings


def _find(text: str) -> tuple[SecretFinding, ...]:
    small = _small(text)
    # What is typed is looked through on every turn: hints first, in one plain loop.
    kind_places = {
        place
        for sign, hints in _HINTS.items()
        if sign in small
        for hint, place in hints
        if hint in small
    }
    findings = [
        SecretFinding(kind=kind.name, start=start, end=end)
        for kind in map(SECRET_KINDS.__getitem__, sorted(kind_places))
        for start, end in kind.find(text)
    ]
    findings += _assigned(text, small)
    return _without_overlaps(findings) if findings else ()


def redact(text: str, findings: Sequence[SecretFinding]) -> str:
    """`text` with `[redacted: kind]` for each finding, which are those of this text."""
    return splice(text, ((f.start, f.end, f"[redacted: {f.kind}]") for f in findings))


def cut_excerpt(text: str, findings: Sequence[SecretFinding], start: int, end: int) -> Excerpt:
    """The part of a text from one place to another; `findings` are those of the whole text. A
    secret of several lines has a mark in each of them, so that lines keep their numbers."""
    inside = [finding for finding in findings if finding.start < end and finding.end > start]
    part = text[start:end]
    if not inside:
        return Excerpt(text=part)
    pieces = (
        replace(piece, start=max(piece.start, start) - start, end=min(piece.end, end) - start)
        for finding in inside
        for piece in _by_line(text, finding)
        if piece.start < end and piece.end > start
    )
    return Excerpt(
        text=part,
        safe=redact(part, tuple(pieces)),
        secrets=tuple(finding.kind for finding in inside),
    )


def _by_line(text: str, finding: SecretFinding) -> Iterator[SecretFinding]:
    start = finding.start
    while start < finding.end:
        line_end = text.find("\n", start, finding.end)
        end = finding.end if line_end < 0 else line_end
        if text[start:end].strip():
            yield replace(finding, start=start, end=end)
        start = end + 1


def list_pieces(text: str, findings: Sequence[SecretFinding]) -> dict[str, str]:
    """The lines of secrets, each with the mark for it: for values that were read from a text, and
    are not spelled as they are there."""
    pieces: dict[str, str] = {}
    for finding in findings:
        for line in text[finding.start : finding.end].split("\n"):
            if len(line.strip()) >= _SHORTEST_PIECE:
                pieces.setdefault(line.strip(), f"[redacted: {finding.kind}]")
    return pieces


_SHORTEST_PIECE = 6


def count_marks(text: str) -> int:
    """How often a text says that a secret was left out."""
    return len(_MARK.findall(text)) if "[" in text else 0


def describe_secrets(secrets: Sequence[str]) -> str:
    """How many secrets of which kinds there are, for a person."""
    counts = Counter(secrets)
    kinds = ", ".join(kind if count == 1 else f"{count} x {kind}" for kind, count in counts.items())
    return f"{len(secrets)} secret{'' if len(secrets) == 1 else 's'} ({kinds})"


def _small(text: str) -> str:
    """`text` in small letters, each where it stood."""
    small = text.lower()
    # A few letters become two; plain ones are all that is looked for.
    return small if len(small) == len(text) else text.translate(_ASCII_SMALL)


_ASCII_SMALL = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def _without_overlaps(findings: list[SecretFinding]) -> tuple[SecretFinding, ...]:
    """The findings by place. Those that overlap are one, of the kind that was looked for first."""
    ranked: list[tuple[int, SecretFinding]] = []
    for rank, finding in sorted(enumerate(findings), key=lambda pair: pair[1].start):
        if not ranked or finding.start >= ranked[-1][1].end:
            ranked.append((rank, finding))
        else:
            before = ranked.pop()
            first, winner = min(before, (rank, finding), key=lambda pair: pair[0])
            end = max(before[1].end, finding.end)
            ranked.append((first, replace(winner, start=before[1].start, end=end)))
    return tuple(finding for _, finding in ranked)


# -- values that are called secrets --------------------------------------------------------------

# By what they have in common: where that is missing, so are all of them.
_NAMES = {
    "pass": ("password", "passwd", "passphrase"),
    "pwd": ("pwd",),
    "secret": ("secret",),
    "token": ("token",),
    "key": tuple(
        f"{of}{by}key"
        for of in ("api", "access", "auth", "encryption", "signing")
        for by in ("", "_", "-")
    ),
}
_VALUE = re.compile(
    # What a name may go on with, a quotation mark, and a sign; `.netrc` has a blank instead.
    r"(?:[_-][\w-]{0,20})?[\"']?(?:\s{0,3}(?::=|=>|[:=])[ \t]{0,4}|(?<=password)[ \t]{1,4})"
    r"(?:\"(?P<double>[^\"\s]{8,200}+)\"|'(?P<single>[^'\s]{8,200}+)'"
    r"|(?P<bare>[^\s\"'`<>(),;&{}\[\]]{12,200}+)(?=[\s\"'`,;&}]|\Z))",
    re.IGNORECASE,
)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_HEX = re.compile(r"[0-9a-f]{32,128}", re.IGNORECASE)
# Names of things, places and calls: words with something between them.
_WORD = r"(?:[A-Za-z]++[0-9]{0,3}+|[A-Za-z][0-9]{1,4}[A-Za-z]|[0-9]{1,4}+)"
_WORDY = re.compile(rf"[._:/-]*+(?:{_WORD}[._:/@#%&?=+-]++)*+(?:{_WORD})?[._:/|-]*")
_CODE = re.compile(
    r"^\$|\$[({]|\\|://|\.\.|[({\[]|\w\.[a-z_]+\.|^[./~]|^arn:|^sha\d+-", re.IGNORECASE
)
_KINDS_BY_NAME = (("pass", "password"), ("pwd", "password"), ("key", "API key"), ("token", "token"))
_OTHERWISE = "secret"
_KIND_NAMES = {kind.name for kind in SECRET_KINDS} | {kind for _, kind in _KINDS_BY_NAME}
_ALL_KINDS = "|".join(map(re.escape, sorted({*_KIND_NAMES, _OTHERWISE})))
_MARK = re.compile(rf"\[redacted:\s*(?:{_ALL_KINDS})\s*\]", re.IGNORECASE)


def _assigned(text: str, small: str) -> Iterator[SecretFinding]:
    """Values of names like `password` that were not made to be read."""
    for name in (name for part, names in _NAMES.items() if part in small for name in names):
        # Plain searches for plain names: a pattern of them all takes ten times as long.
        at = small.find(name)
        while at >= 0:
            match = _VALUE.match(text, at + len(name))
            if match and (group := match.lastgroup) and _is_random(match[group], group):
                kind = next((kind for part, kind in _KINDS_BY_NAME if part in name), _OTHERWISE)
                yield SecretFinding(kind=kind, start=match.start(group), end=match.end(group))
            at = small.find(name, at + len(name))


def _is_random(value: str, group: str) -> bool:
    """Whether a value has what random ones have: many different characters of several sorts, and
    no words."""
    if is_placeholder(value) or _UUID.fullmatch(value) or _WORDY.fullmatch(value):
        return False
    if _HEX.fullmatch(value):
        return True
    if _CODE.search(value):
        return False
    sorts = (
        any(map(str.islower, value)) + any(map(str.isupper, value)) + any(map(str.isdigit, value))
    ) + any(not letter.isalnum() for letter in value)  # fmt: skip
    return sorts >= 3 and _bits(value) >= (3.3 if group == "bare" else 3.0)


def _bits(value: str) -> float:
    """Shannon's entropy of the characters, in bits for each."""
    shares = (count / len(value) for count in Counter(value).values())
    return -sum(share * math.log2(share) for share in shares)
