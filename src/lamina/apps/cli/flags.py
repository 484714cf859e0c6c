"""Flags that several commands share, each defined once, in groups that become the records of
`lamina.apps.views.session_options`.

A command's dataclass parameter stands for the flags that are its fields; Typer itself has no such
groups.
"""

import inspect
import os
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import datetime
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer
from msgspec.structs import replace

from lamina.apps.cli.outcome import refuse_if
from lamina.apps.views.session_options import Mode, PromptOptions, SessionOptions, SettingChanges
from lamina.core.notes.scopes import make_scope
from lamina.core.values.note import Scope
from lamina.core.values.web_access import WebAccess

Result = TypeVar("Result")


def expand_flags(command: Callable[..., Result]) -> Callable[..., Result]:
    """Replace a command's groups by their flags; the command itself is called with the groups.

    Raises:
        TypeError: two of its flags have the same name.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters: dict[str, inspect.Parameter] = {}
    groups: dict[str, Any] = {}

    def add(name: str, default: Any, kind: Any) -> None:
        if name in parameters:
            raise TypeError(f"{command.__name__} has the flag {name!r} twice")
        parameters[name] = inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
        )

    for name, parameter in inspect.signature(command).parameters.items():
        if not is_dataclass(kind := hints[name]):
            add(name, parameter.default, kind)
            continue
        groups[name] = kind
        kinds = get_type_hints(kind, include_extras=True)
        for field in fields(kind):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            add(field.name, default, kinds[field.name])

    @wraps(command)
    def call(**values: Any) -> Result:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        return command(**values)

    # Typer reads defaults from the signature and types from the annotations.
    setattr(call, "__signature__", inspect.Signature(list(parameters.values())))  # noqa: B010
    call.__annotations__ = {name: flag.annotation for name, flag in parameters.items()}
    return call


# One kind of flag per panel of `--help`.
session_flag = partial(typer.Option, rich_help_panel="Session")
_attachment_flag = partial(typer.Option, rich_help_panel="Attachments")
_tool_flag = partial(typer.Option, rich_help_panel="Mode and tools")
_note_flag = partial(typer.Option, rich_help_panel="Notes to search")
_spend_flag = partial(typer.Option, rich_help_panel="Spending", min=0, metavar="DOLLARS")
_web_flag = partial(typer.Option, rich_help_panel="Web pages")
_date_flag = partial(_note_flag, formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"], metavar="DATE")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Lexical = Annotated[
    bool, typer.Option("--lexical", help="Search by words alone, without embeddings.")
]
AgentWorkspace = Annotated[
    Path, typer.Option("--workspace", "-w", help="The folder in which to look for agents.")
]
SessionWorkspace = Annotated[
    Path,
    typer.Option(
        "--workspace", "-w", exists=True, file_okay=False, help="The folder the sessions belong to."
    ),
]
SessionName = Annotated[
    str, typer.Argument(help="A session's id, the beginning of one, or its .jsonl file.")
]
SpendUnasked = Annotated[
    bool,
    typer.Option(
        "--yes", "-y", rich_help_panel="Spending",
        help="Do not ask before rewriting a cache, even if it costs more than the setting "
        "ask_above_cost.",
    ),
]  # fmt: skip
AllowTools = Annotated[
    bool,
    _tool_flag("--allow-tools", help="For this command only, run every tool call without asking."),
]
Within = Annotated[
    list[str] | None,
    _note_flag(
        "--in", metavar="FOLDER|#TAG",
        help="Only notes in one of these folders, or with one of these tags. Repeatable.",
    ),
]  # fmt: skip
Since = Annotated[
    datetime | None,
    _date_flag(help="Only notes changed since this date: 2026-11-17 or 2026-11-17T09:30:00."),
]
Until = Annotated[datetime | None, _date_flag(help="Only notes changed before this date.")]


@dataclass(frozen=True, kw_only=True)
class SessionFlags:
    """Which session to open or continue, with which model and how."""

    workspace: Annotated[
        Path,
        session_flag(
            "--workspace", "-w", exists=True, file_okay=False,
            help="The folder from which attached paths are read.",
        ),
    ] = Path()  # fmt: skip
    session: Annotated[
        str | None,
        session_flag(
            "--session", "-s", metavar="ID",
            help="Continue this session: its id, or the beginning of one.",
        ),
    ] = None  # fmt: skip
    new: Annotated[
        bool,
        session_flag("--new", help="With --session: start a new session under this id."),
    ] = False
    model: Annotated[
        str | None,
        session_flag(
            "--model", "--target", "-m", "-t", metavar="NAME",
            help="provider:model, such as local:smollm2-135m.",
        ),
    ] = None  # fmt: skip
    system: Annotated[
        str,
        session_flag(metavar="TEXT", help="The system prompt, or @FILE to read it from a file."),
    ] = ""
    agent: Annotated[
        str | None,
        session_flag(
            "--agent", "-A", metavar="NAME|PATH",
            help="An agent: persona, rules, references and tools. See `lamina agent`.",
        ),
    ] = None  # fmt: skip
    project: Annotated[
        str | None, session_flag(metavar="NAME", help="One of the agent's projects.")
    ] = None
    trust: Annotated[
        bool,
        session_flag(
            "--trust",
            help="For this command only, trust the agent's folder and --hooks as they are: start "
            "servers and run hooks. See `lamina trust`.",
        ),
    ] = False
    hooks: Annotated[
        list[Path] | None,
        session_flag(
            "--hooks", metavar="FILE",
            help="A Python file whose `hooks` take part in every turn, once you trust it: see "
            "`lamina trust FILE`. Repeatable.",
        ),
    ] = None  # fmt: skip
    max_tokens: Annotated[
        int | None,
        session_flag(
            min=1, metavar="TOKENS",
            help="Limit answers to this many tokens. The session remembers it.",
        ),
    ] = None  # fmt: skip
    spend_turn: Annotated[
        float | None,
        _spend_flag(help="Limit the cost of one question. The session remembers it."),
    ] = None
    spend_session: Annotated[
        float | None,
        _spend_flag(help="Limit the cost of the session. The session remembers it."),
    ] = None
    spend_day: Annotated[
        float | None,
        _spend_flag(
            help="Limit the cost of all sessions per day. LAMINA_SPEND_DAY always applies. See "
            "`lamina spend`."
        ),
    ] = None
    no_memory: Annotated[
        bool, session_flag("--no-memory", help="Leave the contents of `lamina memory` out.")
    ] = False
    mode: Annotated[
        Mode,
        _tool_flag(
            help="agent: the model may call tools as often as it needs. qa: answers come from the "
            "workspace's notes, with citations. plan: one batch of tool calls, then the answer."
        ),
    ] = "agent"
    files: Annotated[
        bool,
        _tool_flag(
            "--files",
            help="Let the model read the workspace's files (ls, read, grep, getFileTree), search "
            "its notes, and change files if you allow it (write, edit, mv, rm, undo).",
        ),
    ] = False
    web_search: Annotated[
        str | None,
        _tool_flag(
            "--web-search", metavar="URL|mcp:SERVER/TOOL",
            help="Let the model search the web at this place; you are asked before each query. The "
            "key is in LAMINA_WEB_SEARCH_KEY; docs/web-search.md has the format. Default: "
            "LAMINA_WEB_SEARCH.",
        ),
    ] = None  # fmt: skip
    mcp: Annotated[
        Path | None,
        _tool_flag(
            help="A JSON file with `mcpServers` to start, for this command only.",
            exists=True,
            dir_okay=False,
        ),
    ] = None
    within: Within = None
    since: Since = None
    until: Until = None
    web: Annotated[
        WebAccess | None,
        _web_flag(
            help="Which pages may be fetched: none (the default), only those of --allow-host, or "
            "any public page. The session remembers it."
        ),
    ] = None
    allow_host: Annotated[
        list[str] | None,
        _web_flag(
            "--allow-host", metavar="HOST[:PORT]",
            help="A host from which to fetch pages; *.example.org means every host below it, "
            "private:NAME a host with a private address. Repeatable.",
        ),
    ] = None  # fmt: skip

    def options(self, changes: SettingChanges | None = None) -> SessionOptions:
        """The options as a record; `changes` are settings that have their own flags."""
        refuse_if(
            self.mode == "qa" and self.files,
            "--files needs --mode agent or plan; qa calls no tools",
        )
        return SessionOptions(
            workspace=self.workspace,
            session=self.session,
            is_new=self.new,
            target=self.model,
            system=text_or_file(self.system),
            agent=self.agent,
            project=self.project,
            hooks=tuple(self.hooks or ()),
            trust=self.trust,
            mode=self.mode,
            files=self.files,
            web_search=self.web_search or usual_web_search(self.mode),
            mcp=self.mcp,
            max_tokens=self.max_tokens,
            memory=not self.no_memory,
            scope=read_scope(self.within, self.since, self.until),
            changes=replace(
                changes or SettingChanges(),
                # --allow-host alone allows the listed hosts.
                web=self.web or ("listed" if self.allow_host else None),
                allow_hosts=tuple(self.allow_host or ()),
                spend_turn=self.spend_turn,
                spend_session=self.spend_session,
                spend_day=self.spend_day,
            ),
        )


@dataclass(frozen=True, kw_only=True)
class PromptFlags:
    """What is sent with every question."""

    attach: Annotated[
        list[str] | None,
        _attachment_flag(
            "--attach", "-a", metavar="REFERENCE",
            help="A path, a note's name, a folder/, a #tag, lines (note.md#L3-L9), a section "
            "(note#Heading) or a URL. Repeatable.",
        ),
    ] = None  # fmt: skip
    essential: Annotated[
        list[str] | None,
        _attachment_flag(
            metavar="REFERENCE",
            help="Like --attach, but never left out for lack of room. Repeatable.",
        ),
    ] = None

    def options(self) -> PromptOptions:
        return PromptOptions(attach=tuple(self.attach or ()), essential=tuple(self.essential or ()))


@dataclass(frozen=True, kw_only=True)
class PersonFlags(PromptFlags):
    """What is sent with the questions of a person, who may have a note open."""

    active: Annotated[
        str | None,
        _attachment_flag(metavar="NOTE", help="The note you have open; its pictures are sent too."),
    ] = None

    def options(self) -> PromptOptions:
        return replace(super().options(), active=self.active)


def text_or_file(value: str) -> str:
    """The value, or the contents of the file that `@FILE` names."""
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"cannot read {value[1:]!r}: {error}") from error


def usual_web_search(mode: Mode) -> str | None:
    """The place to search the web from the environment; None in a mode without tools."""
    return None if mode == "qa" else os.environ.get("LAMINA_WEB_SEARCH", "").strip() or None


def read_scope(within: list[str] | None, since: datetime | None, until: datetime | None) -> Scope:
    """The notes to search, from the flags."""
    places = within or ()
    for place in places:
        refuse_if(not place.strip("# "), f"--in {place!r} is neither a folder nor a tag")
    folders = (place for place in places if not place.startswith("#"))
    tags = (place for place in places if place.startswith("#"))
    return make_scope(folders, tags, since, until)
