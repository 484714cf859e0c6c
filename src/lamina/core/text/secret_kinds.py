"""What secrets of well-known kinds look like.

Law: every kind has a form of its own, or stands where it is called a secret. Patterns begin with
letters that are rare and are bounded, so that hostile runs cost linear time.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator

from msgspec import Struct

# Start and end of each secret in a text.
Spans = Iterator[tuple[int, int]]


class SecretKind(Struct, frozen=True, kw_only=True):
    """A kind, what a text must hold in small letters if it has one at all, and how to find it."""

    name: str
    hints: tuple[str, ...]
    find: Callable[[str], Spans]


def _tokens(name: str, prefix: str, body: str, *hints: str) -> SecretKind:
    """Tokens that begin with `prefix`, not in the middle of a longer word."""
    pattern = re.compile(rf"(?:{prefix})(?P<body>{body})(?![A-Za-z0-9])")

    def find(text: str) -> Spans:
        for match in pattern.finditer(text):
            is_inside = match.start() and text[match.start() - 1] in _WORD
            if not is_inside and not is_placeholder(match["body"]):
                yield match.span()

    return SecretKind(name=name, hints=hints, find=find)


def _values(name: str, pattern: str, *hints: str) -> SecretKind:
    """The group `value` of `pattern`: a secret by what stands before it."""
    regex = re.compile(pattern)

    def find(text: str) -> Spans:
        for match in regex.finditer(text):
            if not is_placeholder(match["value"]):
                yield match.span("value")

    return SecretKind(name=name, hints=hints, find=find)


# What base64 is made of: a token that follows one of these is a piece of something longer.
_WORD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_STAND_INS = re.compile(
    r"x{4}|\*{3}|\.{3}|…|0{7}|1{5}|12345678|abcdefg|example|your|placeholder|redacted|dummy|sample|"
    r"fake|change_?me|insert|replace|passw|<|\{\{|\$\{|\$\(",
    re.IGNORECASE,
)


def is_placeholder(value: str) -> bool:
    """Whether a value only shows where a secret goes, as in documentation."""
    return len(set(value)) < min(6, len(value) // 2) or bool(_STAND_INS.search(value))


_JWT = re.compile(
    # The look behind stands after the letters, so that the search for these is fast.
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
        # Without a seal it is an example, or proves nothing.
        if isinstance(fields, dict) and "alg" in fields and len(match["seal"]) >= 16:
            yield match.span()


_KEY_BEGINS = re.compile(r"-----BEGIN (?P<what>[A-Z0-9 ]{0,30}?PRIVATE KEY(?: BLOCK)?)-----")
_MOST_KEY = 20_000
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
    """Whole blocks of keys, and what is there of one that was cut off."""
    key_end = 0
    closed: set[int] = set()
    for match in _KEY_BEGINS.finditer(text):
        if match.start() < key_end:
            continue
        closing = f"-----END {match['what']}-----"
        end = text.find(closing, match.end(), match.end() + _MOST_KEY)
        next_start = text.find("-----BEGIN ", match.end(), match.end() + _MOST_KEY)
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
    """Where the lines of a key begin that ends at `end` and lost its beginning."""
    first = None
    lowest = max(0, end - _MOST_KEY)
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
        # Everybody's emulator has the same key.
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
    """The password in `scheme://user:password@host`."""
    for match in _ADDRESS.finditer(text):
        value = match["value"]
        is_scheme = _SCHEME.search(text, max(0, match.start() - 21), match.start())
        is_name = value.lower() in _NO_PASSWORDS or value == match["user"] or len(value) < 4
        is_filled_in = any(sign in value for sign in "$%{}()[]") and _is_template(value)
        if is_scheme and not (is_name or is_filled_in or is_placeholder(value)):
            yield match.span("value")


def _is_template(value: str) -> bool:
    """Whether something else is to be put in its place: `$NAME`, `%s`, `{name}`, `[name]`."""
    return bool(re.fullmatch(r"\$\w+|%[sdv]|.*[{}()].*|\[\w+\]", value))


def _near(context: str, kind: SecretKind) -> SecretKind:
    """A kind that only counts where its vendor is spoken of."""

    def find(text: str) -> Spans:
        return kind.find(text) if context in text.lower() else iter(())

    return SecretKind(name=kind.name, hints=(context,), find=find)


_HEX = "[0-9a-f]"
_TEXT = "[A-Za-z0-9]"
# What random text has and words have not.
_SOON_A_DIGIT = "(?=[A-Za-z-]{0,24}[0-9])"
_SIGN = r"[\"']?[\s:=,\"'|]{1,6}"
_AWS_NAMES = "(?i:secret_?access_?key|aws_?secret_?key)"
_SLACK_HOOK = r"hooks\.slack\.com/[a-z]{8,9}/(?P<value>T\w{6,14}/[\w/]{24,90})"
_TWILIO = rf"(?:(?i:auth_?token)|AC{_HEX}{{32}}){_SIGN}(?P<value>{_HEX}{{32}})(?!\w)"
_AWS_SECRET = "(?P<value>[A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=])"

# In order: where two overlap, the first is believed. AWS's documented example key is not a
# secret, and neither is anything that says it is an example.
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
