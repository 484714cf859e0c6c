"""`lamina emulate`: a vendor's wire on this machine, with an account of what its cache would do."""

import signal
from datetime import date
from importlib import import_module
from pathlib import Path

import anyio
from rich.console import Console

from lamina.apps.cli.interrupts import kept_handlers
from lamina.emulators.answers import AnswerSource, EchoAnswers, ModelAnswers, read_answers
from lamina.emulators.emulator import Emulator, serve_emulator
from lamina.emulators.faults import parse_fault
from lamina.errors import UsageError

VENDORS = {
    "openai": ("OpenAIEmulator", "OPENAI_BASE_URL={url}/v1 OPENAI_API_KEY=any"),
    "anthropic": ("AnthropicEmulator", "ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY=any"),
    "gemini": ("GeminiEmulator", "GOOGLE_GEMINI_BASE_URL={url} GEMINI_API_KEY=any"),
}
ECHO, MODEL = "echo", "model"


async def emulate(
    vendor: str,
    port: int,
    faults: list[str],
    answers: str,
    account_created: date | None,
    console: Console,
) -> str:
    """Serves until it is stopped; gives the report.

    Raises:
        UsageError: the port is taken, a fault is unknown, the answers cannot be read, or the
            vendor's accounts have no age.
    """
    name, environment = VENDORS[vendor]
    options = {} if account_created is None else {"account_since": account_created}
    if options and vendor != "anthropic":
        raise UsageError(f"--account-created is for anthropic, not for {vendor}: leave it out")
    emulators = import_module(f"lamina.emulators.{vendor}.emulator")
    emulator: Emulator = getattr(emulators, name)(
        answers=await _answers(answers, console),
        faults=[parse_fault(fault) for fault in faults],
        **options,
    )
    # Before anybody is told how to end it.
    numbers = signal.SIGINT, signal.SIGTERM
    with kept_handlers(*numbers), anyio.open_signal_receiver(*numbers) as signals:
        async with serve_emulator(emulator, port=port) as url:
            console.print(f"{vendor} at {url}; answers: {answers}. Ctrl-C ends it.")
            console.print(f"Point your application at it: {environment.format(url=url)}")
            console.print(f"What it would have paid so far: {url}/report?format=text")
            async for _ in signals:
                break
    return emulator.report.as_text()


async def _answers(wanted: str, console: Console) -> AnswerSource:
    if wanted == ECHO:
        return EchoAnswers()
    if wanted != MODEL:
        return await anyio.to_thread.run_sync(read_answers, Path(wanted))
    from lamina.adapters.providers.model_book import DEFAULT_TARGET, load_book
    from lamina.apps.cli.console_notices import ConsoleNotices
    from lamina.apps.views.session_opener import ensure_target
    from lamina.apps.wiring.runners import Clients

    target = load_book().find(DEFAULT_TARGET)
    await ensure_target(target, ConsoleNotices(console))
    return ModelAnswers(await Clients(slots=1).provider(target))
