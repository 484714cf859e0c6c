"""A session with something for every screen to show: notes, tools, branches, a label, a summary."""

from pathlib import Path

from tests.browser.browser import run_apart
from tests.browser.vendor import MODEL, Vendor

import lamina
from lamina.emulators.answers import EmulatedAnswer, EmulatedCall

MARKDOWN = """At **noon**, with the tide:

| when | depth |
|:-----|------:|
| 12:00 | 4.2 m |
| 18:00 | 6.9 m |

1. Call on channel 16.
2. Wait for the *green* light.

```python
def depth(hour: int) -> float:
    return 4.2 + hour * 0.1
```

> Keep to the north side. See [the rules](https://harbour.example/rules).
"""


def write_harbour(vault: Path, vendor: Vendor, session: str = "harbour") -> None:
    """Plays the session, on the vendor that the environment leads to."""
    vendor.says(
        MARKDOWN,
        EmulatedAnswer(
            text="Let me look.",
            thinking="The berths are in a note.",
            calls=(EmulatedCall(name="read", arguments={"path": "berths.md"}),),
        ),
        "Berth 7 is for visitors.",
        "On Friday the pier is closed.",
        "On Sunday it is open.",
    )
    run_apart(_play, vault, session)


async def _play(vault: Path, session: str) -> None:
    async with await lamina.open_agent(
        session, workspace=vault, agent="pilot", files=True, target=MODEL
    ) as agent:
        await agent.run("When can I come in?", attach=["approach.md"])
        await agent.run("Which berth is free?")
        answer = await agent.run("And on Friday?", attach=["log/safety.md"])
        assert answer.ending == "answered"
        question = next(
            entry.id
            for entry in reversed(agent.session.path)
            if getattr(getattr(entry, "message", None), "text", "") == "And on Friday?"
        )
        await agent.edit(question, "And on Sunday?")
        last = [entry.id for entry in agent.session.path if hasattr(entry, "message")][-1]
        await agent.session.label(last, "weekend")
        await agent.session.rename("Coming in")
