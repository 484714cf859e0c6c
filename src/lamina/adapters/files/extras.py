"""What the base install leaves out, and which extra brings it.

Law: this table alone knows the distribution's name, what a feature imports and which extra installs
that; every hint is made here. Looking imports nothing.

Private: see `lamina` for what is public.
"""

from importlib.util import find_spec
from typing import Literal

from msgspec import Struct

from lamina.errors import ExtraMissing

DISTRIBUTION = "lamina-context"

# What a command or a call may need. Those of targets are named as their wires.
Need = Literal[
    "llamacpp", "llamacpp_tools", "openai", "anthropic", "gemini",
    "line_editor", "search", "embeddings", "pdf", "pictures", "pages", "mcp", "web", "keyring",
    "emulator",
]  # fmt: skip


class Requirement(Struct, frozen=True):
    """What a need is called in a sentence, what it imports, and the extra that installs that."""

    noun: str
    modules: tuple[str, ...]
    extra: str


# In the order of the README's table.
REQUIREMENTS: dict[Need, Requirement] = {
    "llamacpp": Requirement("the embedded model", ("xllamacpp", "httpx2"), "chat"),
    "llamacpp_tools": Requirement("the embedded model", ("xllamacpp", "httpx2"), "chat"),
    "line_editor": Requirement("typing at a terminal", ("prompt_toolkit",), "chat"),
    "openai": Requirement("OpenAI's wire", ("openai", "httpx2"), "openai"),
    "anthropic": Requirement("Anthropic's wire", ("anthropic", "httpx2"), "anthropic"),
    "gemini": Requirement("Gemini's wire", ("google.genai", "httpx2"), "gemini"),
    "search": Requirement("search", ("numpy", "Stemmer"), "search"),
    "embeddings": Requirement(
        "search by meaning", ("onnxruntime", "onnx", "tokenizers", "numpy"), "search"
    ),
    "pdf": Requirement("reading PDFs", ("pypdfium2",), "notes"),
    "pictures": Requirement("converting pictures", ("PIL",), "notes"),
    "pages": Requirement(
        "reading pages of the web", ("httpcore2", "lxml", "trafilatura", "webencodings"), "pages"
    ),
    "mcp": Requirement("talking to MCP servers", ("mcp",), "mcp"),
    "web": Requirement("the web app", ("starlette", "uvicorn"), "web"),
    "emulator": Requirement("emulating vendors", ("starlette", "uvicorn"), "emulate"),
    "keyring": Requirement("the system's keyring", ("keyring",), "keyring"),
}


def install_hint(*needs: Need) -> str:
    """The command that installs what these need."""
    extras = dict.fromkeys(REQUIREMENTS[need].extra for need in needs)
    return f"pip install '{DISTRIBUTION}[{','.join(extras)}]'"


def missing_modules(need: Need) -> tuple[str, ...]:
    """What of its modules is not installed."""
    return tuple(name for name in REQUIREMENTS[need].modules if not _is_there(name))


def is_installed(need: Need) -> bool:
    return not missing_modules(need)


def require(*needs: Need) -> None:
    """Refuses what needs packages that are not installed.

    Raises:
        ExtraMissing: some are not; it says how to install them.
    """
    if missing := [need for need in dict.fromkeys(needs) if not is_installed(need)]:
        *others, last = [REQUIREMENTS[need].noun for need in missing]
        nouns = f"{', '.join(others)} and {last}" if others else last
        verb = "needs" if len(missing) == 1 else "need"
        raise ExtraMissing(
            f"{nouns} {verb} packages that are not installed: {install_hint(*missing)}"
        )


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package that it is in
        return False
