"""Sessions and runners of `lamina.sync` over fakes."""

from collections.abc import Iterable
from typing import Any

from tests.fakes.book import SMALL, FakeBook
from tests.fakes.clock import FakeClock
from tests.fakes.providers import ProviderFake, ProvidersFake, Step
from tests.fakes.store import FakeStore
from tests.fakes.workspace import FakeWorkspace

import lamina.sync


def fakes(**given: Any) -> dict[str, Any]:
    """What a session of fakes is opened with."""
    return {
        "target": SMALL.name, "store": FakeStore(), "book": FakeBook(), "clock": FakeClock(),
        "workspace": FakeWorkspace(),
    } | given  # fmt: skip


def open_chat(*scripts: Iterable[Step], **given: Any) -> lamina.sync.ChatRunner:
    """A chat whose model plays scripts."""
    providers = ProvidersFake(ProviderFake(*scripts))
    return lamina.sync.open_chat("talk", **fakes(providers=providers) | given)


def open_agent(*scripts: Iterable[Step], **given: Any) -> lamina.sync.AgentRunner:
    """An agent whose model plays scripts."""
    providers = ProvidersFake(ProviderFake(*scripts))
    return lamina.sync.open_agent("talk", **fakes(providers=providers) | given)


def history(session: lamina.sync.Session) -> list[tuple[str, str]]:
    """The messages that stand."""
    return [(message.role, message.text) for message in session.envelope.cached.since(0)]
