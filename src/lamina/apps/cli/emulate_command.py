"""`lamina emulate`: a vendor's API on this machine, with an account of what its cache would do."""

import signal
from datetime import date, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import anyio
import typer
from rich.console import Console

from lamina.adapters.files.extras import require
from lamina.adapters.providers.model_book import DEFAULT_TARGET, load_book
from lamina.apps.cli.console_notices import ConsoleNotices
from lamina.apps.cli.interrupts import kept_handlers, run_async
from lamina.apps.cli.outcome import error_console
from lamina.apps.cli.terminal_text import print_text
from lamina.apps.views.session_opener import ensure_target
from lamina.apps.wiring.runners import Clients
from lamina.emulators.faults import FAULT_EXPLANATIONS, parse_fault
from lamina.errors import UsageError

# Emulators need an extra; the command's help does not.
if TYPE_CHECKING:
    from lamina.emulators.answers import AnswerSource
    from lamina.emulators.emulator import Emulator

app = typer.Typer()

VENDORS = {
    "openai": ("OpenAIEmulator", "OPENAI_BASE_URL={url}/v1 OPENAI_API_KEY=any"),
    "anthropic": ("AnthropicEmulator", "ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY=any"),
    "gemini": ("GeminiEmulator", "GOOGLE_GEMINI_BASE_URL={url} GEMINI_API_KEY=any"),
}
ECHO, MODEL = "echo", "model"


async def serve_vendor(
    vendor: str,
    port: int,
    faults: list[str],
    answers: str,
    account_created: date | None,
    console: Console,
) -> str:
    """Serve until stopped; return the report.

    Raises:
        UsageError: the port is in use, a fault is unknown, the answers cannot be read, or the
            vendor's accounts have no age.
    """
    from lamina.emulators.emulator import serve_emulator

    name, environment = VENDORS[vendor]
    options = {} if account_created is None else {"account_since": account_created}
    if options and vendor != "anthropic":
        raise UsageError(f"--account-created only works with anthropic, not with {vendor}")
    emulators = import_module(f"lamina.emulators.{vendor}.emulator")
    emulator: Emulator = getattr(emulators, name)(
        answers=await _answers(answers, console),
        faults=[parse_fault(fault) for fault in faults],
        **options,
    )
    # Before the message that says how to stop it.
    numbers = signal.SIGINT, signal.SIGTERM
    with kept_handlers(*numbers), anyio.open_signal_receiver(*numbers) as signals:
        async with serve_emulator(emulator, port=port) as url:
            console.print(f"{vendor} at {url}; answers: {answers}. Ctrl-C stops it.")
            console.print(f"Point your application at it: {environment.format(url=url)}")
            console.print(f"Costs so far: {url}/report?format=text")
            async for _ in signals:
                break
    return emulator.report.as_text()


async def _answers(wanted: str, console: Console) -> "AnswerSource":
    from lamina.emulators.answers import EchoAnswers, ModelAnswers, read_answers

    if wanted == ECHO:
        return EchoAnswers()
    if wanted != MODEL:
        return await anyio.to_thread.run_sync(read_answers, Path(wanted))
    target = load_book().find(DEFAULT_TARGET)
    await ensure_target(target, ConsoleNotices(console))
    return ModelAnswers(await Clients(slots=1).provider(target))


@app.command()
def emulate(
    vendor: Annotated[
        Literal["openai", "anthropic", "gemini"], typer.Argument(help="Whose API to emulate.")
    ],
    port: Annotated[int, typer.Option(help="Port on the loopback; 0 picks a free one.")] = 0,
    fault: Annotated[
        list[str] | None,
        typer.Option(help="KIND, KIND*TIMES or KIND*TIMES@SKIP; see --list-faults. Repeatable."),
    ] = None,
    answers: Annotated[
        str,
        typer.Option(help="'echo', 'model' (the embedded one), or a JSON file of answers."),
    ] = "echo",
    account_created: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"],
            help="The day the emulated Anthropic account was created: before 2026-08-31, thinking "
            "that no longer fits is accepted.",
            show_default="2026-09-15",
        ),
    ] = None,
    list_faults: Annotated[
        bool, typer.Option("--list-faults", help="List the faults that can be triggered, and exit.")
    ] = False,
) -> None:
    """Emulate a vendor's API on this machine, and account for its prefix cache by its rules.

    Point an application at it to see what it would have paid: a table at the end, and at any time
    under /report. POST /emulator/clock {"move": 400} moves its clock; POST /emulator/fault
    {"fault": "429*2"} makes it fail.

    A file of answers is a list, one per request: texts, or {"text": ..., "thinking": ..., "calls":
    [{"name": "read_file", "arguments": {"path": "plan.md"}}]} with any of the three.
    Anthropic's answers may continue with "then": {...} in the same message.
    """
    if list_faults:
        for kind, explanation in FAULT_EXPLANATIONS.items():
            print_text(f"{kind:<9} {explanation}")
        return
    require("emulator", *(("llamacpp",) if answers == "model" else ()))

    created = account_created.date() if account_created else None
    typer.echo(
        run_async(serve_vendor, vendor, port, fault or [], answers, created, error_console())
    )
