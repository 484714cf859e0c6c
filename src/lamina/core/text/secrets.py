"""Finds secrets of well-known kinds in a text, and redacts them.

Laws: every kind has a pattern of its own, or is found where a name marks a secret. The same text
yields the same findings and the same redacted text. The replacement of a secret states its kind and
nothing else: no digest that could be tried against a list. Redacted text contains no secrets. A
part of a text is judged as part of the whole: half a key is a secret if the whole key is. Patterns
start with rare letters and are bounded, so that time is proportional to the length of the text,
even for hostile runs.
"""

import base64
import binascii
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.text.characters import splice
from lamina.core.values.item import Excerpt

# Start and end of each secret in a text.
Spans = Iterator[tuple[int, int]]


class SecretKind(Struct, frozen=True, kw_only=True):
    """A kind of secret, the lower-case hints without which a text cannot contain one, and its
    finder."""

    name: str
    hints: tuple[str, ...]
    find: Callable[[str], Spans]


def _tokens(name: str, prefix: str, body: str, *hints: str) -> SecretKind:
    """Return a finder of tokens that start with `prefix`, not in the middle of a longer word."""
    pattern = re.compile(rf"(?:{prefix})(?P<body>{body})(?![A-Za-z0-9])")

    def find(text: str) -> Spans:
        for match in pattern.finditer(text):
            is_inside = match.start() and text[match.start() - 1] in _WORD
            if not is_inside and not is_placeholder(match["body"]):
                yield match.span()

    return SecretKind(name=name, hints=hints, find=find)


def _values(name: str, pattern: str, *hints: str) -> SecretKind:
    """Return a finder of the group `value` of `pattern`: a secret because of the text before it."""
    regex = re.compile(pattern)

    def find(text: str) -> Spans:
        for match in regex.finditer(text):
            if not is_placeholder(match["value"]):
                yield match.span("value")

    return SecretKind(name=name, hints=hints, find=find)


# The characters of base64: a token that follows one of these is part of something longer.
_WORD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_STAND_INS = re.compile(
    r"x{4}|\*{3}|\.{3}|…|0{7}|1{5}|12345678|abcdefg|example|your|placeholder|redacted|dummy|sample|"
    r"fake|change_?me|insert|replace|passw|<|\{\{|\$\{|\$\(",
    re.IGNORECASE,
)


def is_placeholder(value: str) -> bool:
    """Return whether a value only shows where a secret goes, as in documentation."""
    return len(set(value)) < min(6, len(value) // 2) or bool(_STAND_INS.search(value))


_JWT = re.compile(
    # The lookbehind comes after the letters, so that the search for these is fast.
    r"eyJ(?<![\w-]eyJ)(?P<head>[\w-]*+)\.(?P<body>eyJ[\w-]++)\.(?P<seal>[\w-]*+)"
)


def _json_web_tokens(text: str) -> Spans:
    for match in _JWT.finditer(text):
        head = "eyJ" + match["head"]
        try:
            padding = "=" * (-len(head) % 4)
            fields = json.loads(base64.urlsafe_b64decode(head + padding)) if len(head) < 4096 else 0
        except (ValueError, binascii.Error, RecursionError):
            continue
        # Without a signature it is an example, or proves nothing.
        if isinstance(fields, dict) and "alg" in fields and len(match["seal"]) >= 16:
            yield match.span()


_KEY_BEGINS = re.compile(r"-----BEGIN (?P<what>[A-Z0-9 ]{0,30}?PRIVATE KEY(?: BLOCK)?)-----")
_MAX_KEY = 20_000
_KEY_LINE = re.compile(r"[A-Za-z0-9+/]{32}")
# A key without its end: fields, then words of base64, with the line breaks of JSON or of text and
# whatever a quotation, a comment or an indentation puts before a line.
_KEY_GAP = r"(?:\\[nr]|[\s>#*|\"',+\\]){0,80}+"
_KEY_FIELD = rf"(?:{_KEY_GAP}(?:Proc-Type|DEK-Info|Version|Comment): ?[^\n\\]{{0,200}}+)"
_CUT_KEY = re.compile(
    rf"{_KEY_FIELD}{{0,4}}+(?:{_KEY_GAP}[A-Za-z0-9+/]{{20,}}+={{0,2}})++"
    rf"(?:{_KEY_GAP}[A-Za-z0-9+/]{{1,19}}+(?:={{1,2}}|\s*+\Z))?+"
)


def _private_keys(text: str) -> Spans:
    """Return whole blocks of keys, and the remains of a truncated one."""
    key_end = 0
    closed: set[int] = set()
    for match in _KEY_BEGINS.finditer(text):
        if match.start() < key_end:
            continue
        closing = f"-----END {match['what']}-----"
        end = text.find(closing, match.end(), match.end() + _MAX_KEY)
        next_start = text.find("-----BEGIN ", match.end(), match.end() + _MAX_KEY)
        if end >= 0 and not 0 <= next_start < end:
            if not _KEY_LINE.search(text, match.end(), end):
                continue
            key_end = end + len(closing)
            closed.add(key_end)
        elif cut := _CUT_KEY.match(text, match.end()):
            key_end = cut.end()
        else:
            continue
        yield match.start(), key_end
    for match in _KEY_ENDS.finditer(text):
        if match.end() not in closed and (start := _tail_start(text, match.start())) is not None:
            yield start, match.end()


_KEY_ENDS = re.compile(r"-----END [A-Z0-9 ]{0,30}?PRIVATE KEY(?: BLOCK)?-----")
_TAIL_LINE = re.compile(r"[\s>#*|\"',+]{0,80}+([A-Za-z0-9+/]{1,100}+)={0,2}[\s\"',+\\]{0,20}+")


def _tail_start(text: str, end: int) -> int | None:
    """Return the start of the lines of a key that ends at `end` and lost its beginning."""
    first = None
    lowest = max(0, end - _MAX_KEY)
    at = text.rfind("\n", lowest, end)
    while at > lowest:
        line_start = max(text.rfind("\n", lowest, at) + 1, lowest)
        line = _TAIL_LINE.fullmatch(text, line_start, at)
        # Only the last line of a key is short.
        if line is None or (first is not None and len(line[1]) < 20):
            break
        first, at = line_start, line_start - 1
    return first


_DISCORD_TAIL = re.compile(r"\.[\w-]{6}\.[\w-]{27,40}(?![\w-])")
_DISCORD_HEAD = re.compile(r"(?<![\w.-])[MNO][\w-]{22,27}\Z")


def _discord_tokens(text: str) -> Spans:
    for tail in _DISCORD_TAIL.finditer(text):
        head = _DISCORD_HEAD.search(text, max(0, tail.start() - 29), tail.start())
        if head is None:
            continue
        try:
            account = base64.urlsafe_b64decode(head[0] + "=" * (-len(head[0]) % 4))
        except (ValueError, binascii.Error):
            continue
        if account.isdigit():
            yield head.start(), tail.end()


_TELEGRAM_TAIL = re.compile(r":AA[\w-]{33}(?![\w-])")
_TELEGRAM_HEAD = re.compile(r"(?<!\w)[0-9]{8,10}\Z")


def _telegram_tokens(text: str) -> Spans:
    for tail in _TELEGRAM_TAIL.finditer(text):
        head = _TELEGRAM_HEAD.search(text, max(0, tail.start() - 11), tail.start())
        if head and not is_placeholder(tail[0]):
            yield head.start(), tail.end()


_AZURE_EMULATOR = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq"
_AZURE = re.compile(
    r"(?:AccountKey|SharedAccessKey)=(?P<value>[A-Za-z0-9+/]{43}(?:[A-Za-z0-9+/]{43}=)?=)"
)


def _azure_keys(text: str) -> Spans:
    for match in _AZURE.finditer(text):
        # All emulators have the same key.
        if not match["value"].startswith(_AZURE_EMULATOR) and not is_placeholder(match["value"]):
            yield match.span("value")


# Both are bounded: anything longer is not an address.
_ADDRESS = re.compile(
    r"://(?P<user>[^\s/:@\"'`<>()\[\]{}\\]{0,100}):(?P<value>[^\s/\"'`<>\\]{1,200})@(?=[\w\[])"
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,20}\Z")
_NO_PASSWORDS = frozenset((
    "pass", "pwd", "secret", "user", "username", "token", "root", "admin", "postgres", "mysql",
    "mongo", "guest", "test", "tiger", "changeit", "hunter2", "string",
))  # fmt: skip


def _address_passwords(text: str) -> Spans:
    """Return the password in `scheme://user:password@host`."""
    for match in _ADDRESS.finditer(text):
        value = match["value"]
        is_scheme = _SCHEME.search(text, max(0, match.start() - 21), match.start())
        is_name = value.lower() in _NO_PASSWORDS or value == match["user"] or len(value) < 4
        is_filled_in = any(sign in value for sign in "$%{}()[]") and _is_template(value)
        if is_scheme and not (is_name or is_filled_in or is_placeholder(value)):
            yield match.span("value")


def _is_template(value: str) -> bool:
    """Return whether a value is a placeholder: `$NAME`, `%s`, `{name}`, `[name]`."""
    return bool(re.fullmatch(r"\$\w+|%[sdv]|.*[{}()].*|\[\w+\]", value))


def _near(context: str, kind: SecretKind) -> SecretKind:
    """Return a kind that only counts near a mention of its vendor."""

    def find(text: str) -> Spans:
        return kind.find(text) if context in text.lower() else iter(())

    return SecretKind(name=kind.name, hints=(context,), find=find)


_HEX = "[0-9a-f]"
_TEXT = "[A-Za-z0-9]"
# Features of random text that words do not have.
_SOON_A_DIGIT = "(?=[A-Za-z-]{0,24}[0-9])"
_SIGN = r"[\"']?[\s:=,\"'|]{1,6}"
_AWS_NAMES = "(?i:secret_?access_?key|aws_?secret_?key)"
_SLACK_HOOK = r"hooks\.slack\.com/[a-z]{8,9}/(?P<value>T\w{6,14}/[\w/]{24,90})"
_TWILIO = rf"(?:(?i:auth_?token)|AC{_HEX}{{32}}){_SIGN}(?P<value>{_HEX}{{32}})(?!\w)"
_AWS_SECRET = "(?P<value>[A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=])"

# In order: where two overlap, the first one wins. AWS's documented example key is not a secret, and
# neither is anything that says it is an example.
SECRET_KINDS: tuple[SecretKind, ...] = (
    SecretKind(name="private key", hints=("private key",), find=_private_keys),
    _tokens("AWS access key", "A[KSB]IA|ACCA", "[A-Z0-9]{16}", "akia", "asia", "abia", "acca"),
    _values("AWS secret key", rf"{_AWS_NAMES}{_SIGN}{_AWS_SECRET}", "secret"),
    _values("AWS secret key", rf"A[KS]IA[A-Z0-9]{{16}}{_SIGN}{_AWS_SECRET}", "akia", "asia"),
    _tokens("GitHub token", "gh[pousr]_", f"{_TEXT}{{36,255}}", *map("gh{}_".format, "pousr")),
    _tokens("GitHub token", "github_pat_", r"\w{60,100}", "github_pat_"),
    *(_tokens("GitLab token", f"gl{what}-", r"[\w-]{20,64}(?:\.[\w.-]{4,40})?", f"gl{what}-")
      for what in ("pat", "dt", "rt", "cbt", "ptt", "ft", "oas", "soat", "agent", "imt")),
    _tokens("Slack token", "xox[abeoprs]-", rf"{_SOON_A_DIGIT}[A-Za-z0-9-]{{20,250}}", "xox"),
    _tokens("Slack token", "xapp-", r"[0-9]-[A-Z0-9]{8,14}-[0-9]{8,16}-[a-f0-9]{32,80}", "xapp-"),
    _values("Slack webhook", _SLACK_HOOK, "hooks.slack"),
    _tokens("Stripe key", "[sr]k_live_", f"{_TEXT}{{20,250}}", "k_live_"),
    _tokens("Stripe webhook secret", "whsec_", f"{_TEXT}{{32,64}}", "whsec_"),
    _tokens("Anthropic key", "sk-ant-", r"[a-z]{3,6}[0-9]{2}-[\w-]{32,200}", "sk-ant-"),
    _tokens("OpenRouter key", "sk-or-", f"v1-{_HEX}{{64}}", "sk-or-"),
    _tokens("OpenAI key", "sk-(?:proj|svcacct|admin|None)-", r"[\w-]{32,200}", "sk-"),
    _tokens("OpenAI key", "sk-", f"{_SOON_A_DIGIT}{_TEXT}{{32,64}}", "sk-"),
    _tokens("Google API key", "AIza", r"[\w-]{35}", "aiza"),
    _tokens("Google client secret", "GOCSPX-", r"[\w-]{28}", "gocspx-"),
    _tokens("Google access token", r"ya29\.", r"[\w-]{30,250}", "ya29."),
    _tokens("npm token", "npm_", f"{_SOON_A_DIGIT}{_TEXT}{{36}}", "npm_"),
    _tokens("PyPI token", "pypi-AgEI", r"[\w-]{50,250}", "pypi-agei"),
    _tokens("Hugging Face token", "hf_", f"{_TEXT}{{34,40}}", "hf_"),
    _tokens("SendGrid key", r"SG\.", r"[\w-]{16,32}\.[\w-]{32,64}", "sg."),
    _near("twilio", _tokens("Twilio key", "SK", f"{_HEX}{{32}}", "sk")),
    _near("twilio", _values("Twilio token", _TWILIO, "t")),
    _near("mailgun", _tokens("Mailgun key", "key-", f"{_HEX}{{32}}", "key-")),
    _tokens("DigitalOcean token", "do[opr]_v1_", f"{_HEX}{{64}}", "_v1_"),
    _tokens("age key", "AGE-SECRET-KEY-1", "[A-Z0-9]{58}", "age-secret-key-1"),
    _values("Discord webhook", r"/api/webhooks/[0-9]{15,22}/(?P<value>[\w-]{50,100})", "discord"),
    SecretKind(name="Discord token", hints=(".",), find=_discord_tokens),
    SecretKind(name="Telegram bot token", hints=(":aa",), find=_telegram_tokens),
    SecretKind(name="JSON web token", hints=("eyj",), find=_json_web_tokens),
    SecretKind(name="Azure key", hints=("accountkey=", "sharedaccesskey="), find=_azure_keys),
    SecretKind(name="password", hints=("://",), find=_address_passwords),
)  # fmt: skip


class SecretFinding(Struct, frozen=True, kw_only=True):
    """A secret in a text: its kind and place."""

    kind: str
    start: int
    end: int


MAX_LOOKS = 8
# Most hints contain a character that is rare in what people type: without it none of them is
# searched for.
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
    """Return the secrets in `text`, in order; none overlaps another."""
    findings: tuple[SecretFinding, ...] = ()
    rest = text
    # A secret that touches another is recognised only after the other is removed.
    for _ in range(MAX_LOOKS):
        more = _find(rest)
        if not more:
            break
        findings = _without_overlaps([*findings, *more])
        blanks = ((f.start, f.end, "[" + " " * (f.end - f.start - 2) + "]") for f in more)
        rest = splice(rest, blanks)
    return findings


def _find(text: str) -> tuple[SecretFinding, ...]:
    small = _small(text)
    # Typed text is searched on every turn: hints first, in one plain loop.
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
    """Return `text` with `[redacted: kind]` for each finding; the findings are those of this
    text."""
    return splice(text, ((f.start, f.end, f"[redacted: {f.kind}]") for f in findings))


def cut_excerpt(text: str, findings: Sequence[SecretFinding], start: int, end: int) -> Excerpt:
    """Return the part of a text between two places; `findings` are those of the whole text. A
    secret of several lines has a mark in each of them, so that line numbers stay the same."""
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
    """Return the lines of secrets, each with its mark: for values parsed from a text and spelled
    differently there."""
    pieces: dict[str, str] = {}
    for finding in findings:
        for line in text[finding.start : finding.end].split("\n"):
            if len(line.strip()) >= _SHORTEST_PIECE:
                pieces.setdefault(line.strip(), f"[redacted: {finding.kind}]")
    return pieces


_SHORTEST_PIECE = 6


def count_marks(text: str) -> int:
    """Return how often a text contains a redaction mark."""
    return len(_MARK.findall(text)) if "[" in text else 0


def describe_secrets(secrets: Sequence[str]) -> str:
    """Describe the number and kinds of secrets, for display."""
    counts = Counter(secrets)
    kinds = ", ".join(kind if count == 1 else f"{count} x {kind}" for kind, count in counts.items())
    return f"{len(secrets)} secret{'' if len(secrets) == 1 else 's'} ({kinds})"


def _small(text: str) -> str:
    """Return `text` in lower case, with every letter in its place."""
    small = text.lower()
    # Lower-casing turns a few letters into two; only plain ones are searched for.
    return small if len(small) == len(text) else text.translate(_ASCII_SMALL)


_ASCII_SMALL = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def _without_overlaps(findings: list[SecretFinding]) -> tuple[SecretFinding, ...]:
    """Return the findings by place. Overlapping ones become one, of the kind that was searched for
    first."""
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

# Hints they have in common: where these are missing, so are all values.
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
    # How a name may continue, a quotation mark, and a sign; `.netrc` has a space instead.
    r"(?:[_-][\w-]{0,20})?[\"']?(?:\s{0,3}(?::=|=>|[:=])[ \t]{0,4}|(?<=password)[ \t]{1,4})"
    r"(?:\"(?P<double>[^\"\s]{8,200}+)\"|'(?P<single>[^'\s]{8,200}+)'"
    r"|(?P<bare>[^\s\"'`<>(),;&{}\[\]]{12,200}+)(?=[\s\"'`,;&}]|\Z))",
    re.IGNORECASE,
)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_HEX_VALUE = re.compile(r"[0-9a-f]{32,128}", re.IGNORECASE)
# Names of things, places and calls: words with separators.
_PLAIN_WORD = r"(?:[A-Za-z]++[0-9]{0,3}+|[A-Za-z][0-9]{1,4}[A-Za-z]|[0-9]{1,4}+)"
_WORDY = re.compile(rf"[._:/-]*+(?:{_PLAIN_WORD}[._:/@#%&?=+-]++)*+(?:{_PLAIN_WORD})?[._:/|-]*")
_CODE = re.compile(
    r"^\$|\$[({]|\\|://|\.\.|[({\[]|\w\.[a-z_]+\.|^[./~]|^arn:|^sha\d+-", re.IGNORECASE
)
_KINDS_BY_NAME = (("pass", "password"), ("pwd", "password"), ("key", "API key"), ("token", "token"))
_OTHERWISE = "secret"
_KIND_NAMES = {kind.name for kind in SECRET_KINDS} | {kind for _, kind in _KINDS_BY_NAME}
_ALL_KINDS = "|".join(map(re.escape, sorted({*_KIND_NAMES, _OTHERWISE})))
_MARK = re.compile(rf"\[redacted:\s*(?:{_ALL_KINDS})\s*\]", re.IGNORECASE)


def _assigned(text: str, small: str) -> Iterator[SecretFinding]:
    """Yield values of names like `password` that look machine-generated."""
    for name in (name for part, names in _NAMES.items() if part in small for name in names):
        # Plain searches for plain names: a pattern of them all is ten times slower.
        at = small.find(name)
        while at >= 0:
            match = _VALUE.match(text, at + len(name))
            if match and (group := match.lastgroup) and _is_random(match[group], group):
                kind = next((kind for part, kind in _KINDS_BY_NAME if part in name), _OTHERWISE)
                yield SecretFinding(kind=kind, start=match.start(group), end=match.end(group))
            at = small.find(name, at + len(name))


def _is_random(value: str, group: str) -> bool:
    """Return whether a value looks random: many different characters of several sorts, and no
    words."""
    if is_placeholder(value) or _UUID.fullmatch(value) or _WORDY.fullmatch(value):
        return False
    if _HEX_VALUE.fullmatch(value):
        return True
    if _CODE.search(value):
        return False
    sorts = (
        any(map(str.islower, value)) + any(map(str.isupper, value)) + any(map(str.isdigit, value))
    ) + any(not letter.isalnum() for letter in value)  # fmt: skip
    return sorts >= 3 and _bits(value) >= (3.3 if group == "bare" else 3.0)


def _bits(value: str) -> float:
    """Return Shannon's entropy of the characters, in bits per character."""
    shares = (count / len(value) for count in Counter(value).values())
    return -sum(share * math.log2(share) for share in shares)
