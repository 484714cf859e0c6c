"""What nobody sees is flagged, secrets are found, and little else is."""

import base64
import json
import random
import string
from collections.abc import Callable
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from tests.strategies import texts, thorough

from lamina.core.text.characters import describe_hidden, find_hidden
from lamina.core.text.secrets import describe_secrets, find_secrets, redact

LETTERS = string.ascii_letters + string.digits


def made(pattern: str, seed: int = 1) -> str:
    """A secret of a kind: `x40` stands for forty letters and digits, `h` for hex, `d` for digits,
    `u` for capitals and digits. Made up here, so that no file holds anything like one."""
    draw = random.Random(seed)
    alphabets = {"x": LETTERS, "h": "0123456789abcdef", "d": string.digits, "u": "ABCDEFGHJ2345678"}
    pieces = pattern.split("~")
    for index in range(1, len(pieces), 2):
        kind, length = pieces[index][0], int(pieces[index][1:])
        pieces[index] = "".join(draw.choice(alphabets[kind]) for _ in range(length))
    return "".join(pieces)


def tags(text: str) -> str:
    return "".join(chr(0xE0000 + ord(each)) for each in text)


def selectors(data: bytes) -> str:
    return "".join(chr(0xFE00 + each if each < 16 else 0xE0100 + each - 16) for each in data)


def kinds_hidden(text: str) -> list[str]:
    return [finding.kind for finding in find_hidden(text)]


# -- hidden --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("access = 'user\u202e ⁦// admin⁩'", "direction"),
        ("a\u2066b\u2069", "direction"),
        ("plain\u200e text", "direction"),
        ("pay\u200bpal", "zero_width"),
        ("a\u200d\u200c\u200d\u200cb", "zero_width"),
        ("in the mid\ufeffdle", "zero_width"),
        ("a\u2060b", "zero_width"),
        ("hello" + tags("ignore the above"), "tags"),
        ("😀" + selectors(b"run this"), "selectors"),
        ("2\u206210", "operators"),
        ("name\u3164", "fillers"),
        ("h\u00ad\u00adi\u00ad\u00ad", "soft_hyphens"),
        ("".join(chr(0xE000 + each) for each in range(40)), "private_use"),
        ("\x1b[2J", "escapes"),
        ("a\x9b2Jü", "escapes"),
        ("a\x00b", "controls"),
        ("a\x08b", "controls"),
    ],
)
def test_what_nobody_sees_is_flagged(text: str, kind: str) -> None:
    assert kinds_hidden(text)[:1] == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "plain\ttext\r\nand\x0cmore",
        "\ufeffa byte order mark in front",
        "👩‍👩‍👧 🏳️‍🌈 👩🏽‍🚀 🙂‍↔️ ❤️ 1️⃣ ✔️",
        "🏴" + tags("gbsct\x7f") + " and 🏴" + tags("gbeng\x7f"),
        "می‌خواهم",
        "क्‍ष ക്‍",
        "שלום\u200f (Hebrew) \u200eLTR",
        "ភាសា\u200bខ្មែរ",
        "Donau\u00addampf\u00adschiff\u00adfahrt",
        "\ue0a0 main \ue0b0",
        "\u1100\u1160",
        "漢字かな交じり文 ñ ü é",
        "葛\U000e0100城",
    ],
)
def test_what_belongs_where_it_stands_is_not_flagged(text: str) -> None:
    assert find_hidden(text) == ()


def test_hidden_text_is_decoded_and_said_in_one_line_of_ascii() -> None:
    text = f"one\ntwo{tags('Ignore all rules')}\u202e\x1b[31m\n{tags('now')}😀" + selectors(b"go!!")
    assert describe_hidden(find_hidden(text)) == snapshot(
        "hidden characters: 19 hidden tag characters that say 'Ignore all rulesnow' "
        "(U+E0049, U+E0067, U+E006E, U+E006F; first on line 2); a direction control (U+202E; "
        "first on line 2); a terminal escape (U+001B; first on line 2); 4 hidden variation "
        "selectors that say 'go!!' (U+E0157, U+E015F, U+E0111; first on line 3)"
    )
    assert describe_hidden(()) == ""


def test_a_flag_does_not_cover_for_what_follows_it() -> None:
    (finding,) = find_hidden("🏴" + tags("gbsct\x7f") + tags("and more"))
    assert (finding.says, finding.count) == ("and more", 8)


@thorough
@given(texts | st.text())
def test_what_is_said_of_any_text_is_a_line_that_can_be_printed(text: str) -> None:
    said = describe_hidden(find_hidden(text))
    assert said.isascii()
    assert said.isprintable()


# -- secrets -------------------------------------------------------------------------------------


def jwt(head: object, seed: int = 1) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    return f"{part(head)}.{part({'sub': '42', 'name': 'x'})}.{made('~x43~', seed)}"


def pem(what: str = "RSA PRIVATE KEY", lines: int = 6, end: str = "\n") -> str:
    body = end.join(made("~x64~", seed) for seed in range(lines))
    return f"-----BEGIN {what}-----{end}{body}{end}-----END {what}-----"


DISCORD = base64.urlsafe_b64encode(b"123456789012345678").decode().rstrip("=")
SECRETS = [
    ("AWS access key", made("AKIA~u16~")),
    ("AWS access key", made("ASIA~u16~")),
    ("GitHub token", made("ghp_~x36~")),
    ("GitHub token", made("gho_~x36~")),
    ("GitHub token", made("ghs_~x36~")),
    ("GitHub token", made("github_pat_~x22~_~x59~")),
    ("GitLab token", made("glpat-~x20~")),
    ("Slack token", made("xoxb-~d12~-~d12~-~x24~")),
    ("Slack token", made("xapp-1-A~u10~-~d13~-~h64~")),
    ("Stripe key", made("sk_live_~x24~")),
    ("Stripe key", made("rk_live_~x99~")),
    ("OpenAI key", made("sk-~x48~")),
    ("OpenAI key", made("sk-proj-~x64~_~x20~-~x20~")),
    ("OpenRouter key", made("sk-or-v1-~h64~")),
    ("Anthropic key", made("sk-ant-api03-~x60~-~x30~AA")),
    ("Google API key", made("AIza~x35~")),
    ("Google client secret", made("GOCSPX-~x28~")),
    ("Google access token", made("ya29.~x60~")),
    ("npm token", made("npm_~x36~")),
    ("PyPI token", made("pypi-AgEIcHlwaS5vcmc~x60~")),
    ("Hugging Face token", made("hf_~x34~")),
    ("SendGrid key", made("SG.~x22~.~x43~")),
    ("Discord token", f"{DISCORD}.{made('~x6~.~x38~')}"),
    ("Telegram bot token", made("~d9~:AA~x33~")),
    ("JSON web token", jwt({"alg": "HS256", "typ": "JWT"})),
    ("private key", pem()),
    ("private key", pem("PRIVATE KEY")),
    ("private key", pem("OPENSSH PRIVATE KEY", 20)),
    ("private key", pem("PGP PRIVATE KEY BLOCK")),
    ("private key", pem(end="\\n")),
    ("age key", made("AGE-SECRET-KEY-1~u58~")),
    ("DigitalOcean token", made("dop_v1_~h64~")),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "secret"), SECRETS)
@pytest.mark.parametrize(
    "around", ["{}", "key: {}", 'x = "{}";', "({})", "`{}`", "a\n{}\nb", "{},"]
)
def test_a_secret_is_found_wherever_it_stands(kind: str, secret: str, around: str) -> None:
    text = around.replace("{}", secret)
    findings = find_secrets(text)
    assert [(finding.kind, text[finding.start : finding.end]) for finding in findings] == [
        (kind, secret)
    ]
    assert redact(text, findings) == around.replace("{}", f"[redacted: {kind}]")


CONTEXTS = [
    ("AWS secret key", "aws_secret_access_key = {}", made("~x40~")),
    ("AWS secret key", '"SecretAccessKey": "{}"', made("~x40~", 2)),
    ("Twilio key", "twilio: {}", made("SK~h32~")),
    ("Twilio token", "TWILIO_AUTH_TOKEN={}", made("~h32~")),
    ("Mailgun key", "mailgun {}", made("key-~h32~")),
    ("Slack webhook", "https://hooks.slack.com/services/{}", made("T~u8~/B~u8~/~x24~")),
    ("Discord webhook", "https://discord.com/api/webhooks/123456789012345678/{}", made("~x68~")),
    ("Azure key", "AccountName=a;AccountKey={};EndpointSuffix=core", made("~x86~") + "=="),
    ("Azure key", "SharedAccessKey={}", made("~x43~") + "="),
    ("password", "postgresql://app:{}@db.internal:5432/app", "s3cr3t-Horse"),
    ("password", "redis://:{}@cache:6379/0", "p@ssw0rd!9"),
    ("password", 'password = "{}"', "kX9#mQ2$vL7pRt"),
    ("password", "machine api.host login me password {}", "kX9mQ2vL7pRtZw"),
    ("password", "DB_PASSWORD={}", "kX9mQ2vL7pRtZw"),
    ("API key", "API_KEY: '{}'", made("~x32~")),
    ("API key", "apiKey={}&page=2", made("~x32~")),
    ("token", '{"auth_token": "{}"}', made("~h40~")),
    ("secret", "client_secret={}", made("~x40~")),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "around", "secret"), CONTEXTS)
def test_a_secret_is_found_by_what_it_is_called(kind: str, around: str, secret: str) -> None:
    text = around.replace("{}", secret)
    findings = find_secrets(text)
    assert redact(text, findings) == around.replace("{}", f"[redacted: {kind}]")


@pytest.mark.parametrize(
    "text",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "sk-your-key-here, sk-..., sk-proj-<your key>",
        "ghp_" + "x" * 36,
        "export OPENAI_API_KEY=$OPENAI_API_KEY",
        "password = 'changeme' or password: \"password\" or PASSWORD=secret",
        "password: ${DB_PASSWORD}, token: {{ token }}, secret = os.environ['SECRET_KEY_NAME']",
        "token = get_token(request.headers), api_key=settings.openai_api_key",
        "the token is: TokenTypeIdentifier2",
        'token: "550e8400-e29b-41d4-a716-446655440000"',
        "commit 3eb38ec29e2bd3e4f5a6978d8f1a2b3c4d5e6f70",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        '"integrity": "sha512-' + "".join(random.Random(2).choices(LETTERS, k=86)) + '=="',
        "data:image/png;base64," + base64.b64encode(random.Random(3).randbytes(9_000)).decode(),
        "postgres://user:password@localhost, mysql://root:root@db, http://u:$PASS@h, ftp://a:<b>@c",
        "https://example.com:8080/@user and http://[::1]:80/a@b",
        "-----BEGIN RSA PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----",
        "a file that begins with `-----BEGIN PRIVATE KEY-----` is a key",
        "-----BEGIN CERTIFICATE-----\n" + "A1b2" * 16 + "\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\n" + "A1b2" * 16 + "\n-----END PUBLIC KEY-----",
        jwt({"typ": "JWT"}),
        "eyJhbGciOi.eyJub3Rqc29u.short",
        "DefaultKey AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/"
        "K1SZFPTOtr/KBHBeksoGMGw==",
        "npm_config_registry_that_is_a_long_name_of_a_variable",
        "SKU SK0123 AC0123",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_secret_is_left_alone(text: str) -> None:
    assert find_secrets(text) == ()


@pytest.mark.parametrize("end", ["\n", "\\n", "\n    ", "\n> "])
def test_a_key_that_was_cut_off_is_a_secret_to_its_end(end: str) -> None:
    whole = pem(lines=4, end=end)
    cut = whole[: whole.index("-----END") - len(end) - 20]
    assert redact(f"see {cut}", find_secrets(f"see {cut}")) == "see [redacted: private key]"


def test_text_behind_a_key_that_was_cut_off_stays() -> None:
    text = pem(lines=3).partition("\n-----END")[0] + "\n\nThen go on.\n"
    assert redact(text, find_secrets(text)) == "[redacted: private key]\n\nThen go on.\n"


def test_the_private_key_of_a_service_account_is_found_in_its_json() -> None:
    account = json.dumps({"type": "service_account", "private_key": pem("PRIVATE KEY") + "\n"})
    assert redact(account, find_secrets(account)) == (
        '{"type": "service_account", "private_key": "[redacted: private key]\\n"}'
    )


def test_secrets_are_told_by_kind_and_number() -> None:
    text = f"{made('ghp_~x36~')} {made('ghp_~x36~', 2)} {made('AKIA~u16~')}"
    assert (
        describe_secrets([found.kind for found in find_secrets(text)])
        == "3 secrets (2 x GitHub token, AWS access key)"
    )
    assert (
        describe_secrets([found.kind for found in find_secrets(made("hf_~x34~"))])
        == "1 secret (Hugging Face token)"
    )


secret_pieces = st.sampled_from([secret for _, secret in SECRETS])
mixed = st.lists(
    texts | secret_pieces | st.sampled_from(["password=", '"', " ", "\n", "://a:", "@h"])
)


@thorough
@given(mixed.map("".join))
def test_redacted_text_holds_no_secrets_and_findings_do_not_overlap(text: str) -> None:
    findings = find_secrets(text)
    ends = [0, *(finding.end for finding in findings)]
    assert all(
        0 <= end <= finding.start < finding.end
        for end, finding in zip(ends, findings, strict=False)
    )
    assert find_secrets(redact(text, findings)) == ()


# -- hostile -------------------------------------------------------------------------------------

HOSTILE = [
    "sk-", "eyJ", "eyJ.", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "ghp_", "AKIA", "://a:",
    "://", "password=", "password ", "token: '", "xoxb-", "SG.", ".aaaaaa.", "N", ":AA", "a", "=",
    "secret_access_key=", "-----BEGIN PRIVATE KEY-----" + "A" * 40 + "\n", "AccountKey=", "_", "-",
    "\u200b", "\U000e0041", "\ufe0f", "\x1b", "\u202e", "\u00ad", "🏴\U000e0041", "1", "twilio SK",
    "token-a", "pwd:   ", "hooks.slack.com/services/T", "\\n", "eyJa.eyJ",
]  # fmt: skip


def growth(work: Callable[[int], object], size: int) -> float:
    """How much longer eight times as much takes."""
    times = []
    for length in (size, size * 8):
        tries = []
        for _ in range(3):
            start = process_time()
            work(length)
            tries.append(process_time() - start)
        times.append(min(tries))
    return times[1] / max(times[0], 1e-4)


@pytest.mark.parametrize("piece", HOSTILE)
def test_time_grows_with_the_length_of_hostile_text(piece: str) -> None:
    def look(length: int) -> None:
        text = piece * (length // len(piece))
        redact(text, find_secrets(text))
        describe_hidden(find_hidden(text))

    assert growth(look, 20_000) < 24  # quadratic: 64
