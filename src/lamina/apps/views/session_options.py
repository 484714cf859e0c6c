"""What a person or a program asks for: which session to open and how, and what accompanies a
question. Every app uses one record per question."""

from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import fields

from lamina.core.values.item import AttachmentSpec
from lamina.core.values.note import Scope
from lamina.core.values.settings import Promotion
from lamina.core.values.web_access import WebAccess
from lamina.errors import UsageError

Mode = Literal["agent", "qa", "plan"]


class SettingChanges(Struct, frozen=True, kw_only=True):
    """Settings requested now, over those of the session or its agent. A value equal to the
    default here was not requested."""

    web: WebAccess | None = None
    allow_hosts: tuple[str, ...] = ()
    window: int | None = None
    attachment_limit: int | None = None
    promotion: Promotion | None = None
    spend_turn: float | None = None
    spend_session: float | None = None
    spend_day: float | None = None

    def as_settings(self) -> dict[str, Any]:
        """Return the requested settings by name."""
        values = ((field.name, getattr(self, field.name), field.default) for field in fields(self))
        return {name: value for name, value, default in values if value != default}


class SessionOptions(Struct, frozen=True, kw_only=True):
    """Which session to open, with which agent and how. `session` is an id or the beginning of one,
    to continue that session; with `is_new` it is the id of a new session."""

    workspace: Path = Path()
    session: str | None = None
    is_new: bool = False
    target: str | None = None
    system: str = ""
    agent: str | None = None
    project: str | None = None
    # Files of hooks to load.
    hooks: tuple[Path, ...] = ()
    # Whether to trust, for this opening only, what the agent's folder and files of hooks bring.
    trust: bool = False
    mcp: Path | None = None
    mode: Mode = "agent"
    # Where notes are searched.
    scope: Scope = Scope()
    # Whether the model may look at the workspace's files, and change them.
    files: bool = False
    # Where to search the web, if at all: an address, or the tool of a server.
    web_search: str | None = None
    # Whether the model is given the person's memories.
    memory: bool = True
    # Maximum number of tokens per answer.
    max_tokens: int | None = None
    changes: SettingChanges = SettingChanges()

    @property
    def continued(self) -> str | None:
        """Return the session to continue; None for a new one."""
        return None if self.is_new else self.session


class PromptOptions(Struct, frozen=True, kw_only=True):
    """What accompanies a question; `active` is the note the person has open."""

    attach: tuple[str, ...] = ()
    essential: tuple[str, ...] = ()
    active: str | None = None

    @property
    def references(self) -> tuple[str, ...]:
        return (*self.attach, *self.essential, *((self.active,) if self.active else ()))

    def attachments(self) -> list[str | AttachmentSpec]:
        """Return what a runner attaches."""
        open_note = [AttachmentSpec(what=self.active, shape="active")] if self.active else []
        essential = (AttachmentSpec(what=path, essential=True) for path in self.essential)
        return [*open_note, *self.attach, *essential]


def refuse_ignored(options: SessionOptions) -> None:
    """Refuse options without effect, before anything is opened or downloaded.

    Raises:
        UsageError: an option does not fit the mode.
    """
    if options.mode == "qa" and (options.mcp or options.files or options.web_search):
        raise UsageError(
            "--mode qa answers from notes and calls no tools: leave out the "
            "tools, or use --mode plan or agent"
        )
    if options.mode == "agent" and not options.files and options.scope != Scope():
        raise UsageError(
            "--in, --since and --until say where to search notes, but nothing here searches notes: "
            "add --mode qa, --mode plan or --files"
        )
    if options.project is not None and options.agent is None:
        raise UsageError(f"--project {options.project!r} needs --agent: projects belong to agents")
    if options.is_new and not (options.session or "").strip():
        raise UsageError("--new needs --session NAME: the new session gets that name")
    is_about = options.agent or options.continued or options.hooks
    if options.trust and not is_about:
        raise UsageError(
            "--trust needs --agent or --hooks: it trusts what a folder or a file brings"
        )
