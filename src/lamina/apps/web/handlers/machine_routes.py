"""This machine's memory, targets, local models and keys."""

from anyio.to_thread import run_sync
from msgspec import Struct

from lamina.adapters.files.extras import require
from lamina.adapters.providers.model_book import ModelBook, load_book
from lamina.adapters.providers.tokens import EncodingCounter
from lamina.apps.views import installed_models, known_targets
from lamina.apps.views.agent_overview import ENCODING
from lamina.apps.views.installed_models import find_removable, known_models, path_of_model
from lamina.apps.views.known_targets import TargetRow
from lamina.apps.views.plain_text import write_price
from lamina.apps.web import model_page, provider_keys
from lamina.apps.web.http_answers import Refusal, not_found, refuse_paths
from lamina.apps.web.http_bodies import RequestBody, RequestQuery
from lamina.apps.web.jobs import JobProgress, JobStarted, Report
from lamina.apps.web.model_page import (
    FetchedModel,
    LocalModelList,
    RemovedModel,
    list_rows,
    require_fetchable,
)
from lamina.apps.web.provider_keys import KeyList, KeyTrial
from lamina.apps.web.routes import Call, Route
from lamina.apps.web.searches import report_from_any_thread
from lamina.apps.wiring import default_target
from lamina.apps.wiring.clients import require_reachable
from lamina.apps.wiring.folders import memory_file
from lamina.core.values.settings import LOCAL_WIRES
from lamina.errors import LaminaError, UsageError


class MemoryText(Struct, frozen=True, kw_only=True):
    """The memory for every session; `etag` is the sha256 of the file, empty without a file."""

    text: str
    etag: str
    path: str
    tokens: int
    problem: str


class NewMemory(RequestBody, frozen=True, kw_only=True):
    """The whole text, and the etag of the version read."""

    text: str
    etag: str = ""


class TargetQuery(RequestQuery, frozen=True, kw_only=True):
    """Words that a target's name must contain."""

    q: str = ""


class TargetChoice(Struct, frozen=True, kw_only=True):
    """A target, and whether it is available: `missing` says what is missing, `missing_code` is the
    code of that error. A family stands for every model whose name begins with its name."""

    target: TargetRow
    provider: str
    price: str
    missing: str
    missing_code: str
    is_family: bool


class KnownTargets(Struct, frozen=True, kw_only=True):
    """Matching targets, the default target, and the price date."""

    targets: tuple[TargetChoice, ...]
    default: str
    prices_of: str


class NewKey(RequestBody, frozen=True, kw_only=True):
    """A key, which is never returned."""

    key: str


class TriedKey(RequestBody, frozen=True, kw_only=True):
    """A key to test before it is stored; empty for the stored one."""

    key: str = ""


async def show_memory(_: Call) -> MemoryText:
    memory = memory_file()
    text, etag, problem = "", "", ""
    try:
        etag = await memory.digest()
        text = await memory.read()
    except UsageError as error:
        problem = str(error)
    tokens = EncodingCounter(ENCODING).count(text)
    return MemoryText(text=text, etag=etag, path=str(memory.path), tokens=tokens, problem=problem)


async def write_memory(call: Call) -> MemoryText:
    with refuse_paths("memory"):
        await memory_file().rewrite(call.body.text, call.body.etag)
    return await show_memory(call)


async def list_targets(call: Call) -> KnownTargets:
    return await run_sync(_list_targets, call.query.q)


def _list_targets(words: str) -> KnownTargets:
    book = load_book()
    try:
        rows = known_targets.list_targets(words.split(), book)
    except UsageError:
        rows = []
    missing: dict[str, tuple[str, str]] = {}
    choices = []
    for row in rows:
        provider, _, model = row.target.partition(":")
        key = row.target if provider == "local" else provider
        if key not in missing:
            missing[key] = _missing_for(row.target, book)
        choices.append(
            TargetChoice(
                target=row, provider=provider, price=write_price(row.prices),
                missing=missing[key][0], missing_code=missing[key][1], is_family="*" in model,
            )
        )  # fmt: skip
    return KnownTargets(targets=tuple(choices), default=default_target(), prices_of=book.date)


def _missing_for(name: str, book: ModelBook) -> tuple[str, str]:
    """Return what prevents asking a target, and its code; empty if it is available."""
    try:
        target = book.find(name.replace("*", "any"))
        require(target.wire)
        if target.wire in LOCAL_WIRES:
            path_of_model(target.model)
        else:
            require_reachable(target)
    except LaminaError as error:
        return str(error), error.code
    return "", ""


async def list_models(_: Call) -> LocalModelList:
    return await run_sync(list_rows)


async def fetch_model(call: Call) -> JobStarted:
    name, searches = call.path["name"], call.desk.searches
    if name not in known_models():
        raise not_found("model", name, f"available: {', '.join(known_models())}")
    await run_sync(require_fetchable, name)

    async def work(report: Report) -> FetchedModel:
        def report_step(text: str, done: int, total: int) -> None:
            progress = JobProgress(text=f"{text} {name}", done=done, total=total)
            report_from_any_thread(report, progress)

        fetched = await model_page.fetch_model(name, report_step)
        await searches.renew()
        return fetched

    return call.desk.jobs.start(f"fetch {name}", work).started


async def remove_model(call: Call) -> RemovedModel:
    name = call.path["name"]
    if name not in known_models():
        raise not_found("model", name, f"available: {', '.join(known_models())}")
    await call.desk.searches.renew()
    removable = await run_sync(find_removable, name)
    freed = await run_sync(installed_models.remove_model, removable)
    return RemovedModel(name=name, freed=freed)


async def list_keys(_: Call) -> KeyList:
    return await run_sync(provider_keys.list_keys, load_book())


async def keep_key(call: Call) -> KeyList:
    provider = _provider(call)
    await run_sync(provider_keys.keep_key, provider, call.body.key, load_book())
    return await list_keys(call)


async def forget_key(call: Call) -> KeyList:
    await run_sync(provider_keys.forget_key, _provider(call), load_book())
    return await list_keys(call)


async def try_key(call: Call) -> KeyTrial:
    return await provider_keys.try_provider(_provider(call), call.body.key, load_book())


def _provider(call: Call) -> str:
    provider = call.path["provider"]
    try:
        provider_keys.find_provider(provider, load_book())
    except UsageError as error:
        raise Refusal(404, "unknown_provider", str(error)) from None
    return provider


ROUTES = (
    Route(
        method="GET", path="/api/memory", handler=show_memory, result=MemoryText,
        summary="Shows the memory for every session.",
    ),
    Route(
        method="PUT", path="/api/memory", handler=write_memory, result=MemoryText, body=NewMemory,
        right="admin", summary="Writes the memory, if it has not changed since.",
    ),
    Route(
        method="GET", path="/api/targets", handler=list_targets, result=KnownTargets,
        query=TargetQuery, summary="Lists targets for questions, with prices and windows.",
    ),
    Route(
        method="GET", path="/api/models", handler=list_models, result=LocalModelList,
        summary="Lists the models that run on this machine, or could.",
    ),
    Route(
        method="POST", path="/api/models/{name}/fetch", handler=fetch_model, result=JobStarted,
        status=202, right="admin", summary="Downloads a model, as a job.",
    ),
    Route(
        method="DELETE", path="/api/models/{name}", handler=remove_model, result=RemovedModel,
        right="admin", summary="Removes a model from this machine.",
    ),
    Route(
        method="GET", path="/api/keys", handler=list_keys, result=KeyList,
        summary="Lists which providers have a key, and where; never the keys.",
    ),
    Route(
        method="PUT", path="/api/keys/{provider}", handler=keep_key, result=KeyList, body=NewKey,
        right="admin", summary="Stores a key in the system's keyring.",
    ),
    Route(
        method="DELETE", path="/api/keys/{provider}", handler=forget_key, result=KeyList,
        right="admin", summary="Removes a key from the system's keyring.",
    ),
    Route(
        method="POST", path="/api/keys/{provider}/try", handler=try_key, result=KeyTrial,
        body=TriedKey, right="admin", summary="Tests a key with a free call.",
    ),
)  # fmt: skip
