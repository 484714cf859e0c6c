"""The conversation of `providers.py` through other libraries' own adapters.

    python bench/providers_peers.py langchain|pydantic-ai IDIOM CACHING < plan.json

Run by `providers.py` in an environment of its own, as the adapters want other versions of the SDKs
than Lamina has; so it imports nothing of Lamina. The plan comes in as JSON, with the address of an
emulated vendor; what is printed is the answers, as JSON.

Idioms: `inlined` puts the notes that apply in front of each question, and the history gets the
question alone (LangChain's message history); `instructions` puts them behind the system prompt
(Pydantic AI's dynamic instructions); `kept` sends a note once, with the question for which it is
new or was edited, and the history keeps it: what a careful author writes by hand. CACHING `on` is
what each library documents for prompt caching, `off` is without.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from typing import Any, Protocol

from versions import version

KEY = "sk-bench-0123456789abcdefghij"
SUMMARY = "Here is a summary of the conversation to date:\n\n"
LIBRARIES: dict[str, dict[str, tuple[str, ...]]] = {
    "langchain": {
        "openai": ("langchain", "langchain-core", "langchain-openai", "openai"),
        "anthropic": ("langchain", "langchain-core", "langchain-anthropic", "anthropic"),
        "gemini": ("langchain", "langchain-core", "langchain-google-genai", "google-genai"),
    },
    "pydantic-ai": {
        "openai": ("pydantic-ai-slim", "openai"),
        "anthropic": ("pydantic-ai-slim", "anthropic"),
        "gemini": ("pydantic-ai-slim", "google-genai"),
    },
}
Plan = dict[str, Any]


class Peer(Protocol):
    def ask(self, question: str, notes: str) -> str: ...
    def compact(self, instruction: str, kept_turns: int) -> None: ...


class Notes:
    """Which notes go with a question."""

    def __init__(self, idiom: str) -> None:
        self._keeps = idiom == "kept"
        # By name: the text that the history has of it, and of which turn.
        self._sent: dict[str, tuple[str, int]] = {}

    def take(self, attached: dict[str, str], turn: int) -> str:
        """The texts of the notes for this turn: all of them, or those that the history lacks."""
        new = [
            name
            for name, text in attached.items()
            if not self._keeps or self._sent.get(name, ("", 0))[0] != text
        ]
        self._sent |= {name: (attached[name], turn) for name in new}
        return "\n\n".join(attached[name] for name in new)

    def forget(self, before: int) -> None:
        """Turns gave way to a summary: what stood in them has to be sent again."""
        self._sent = {name: sent for name, sent in self._sent.items() if sent[1] >= before}


class LangChain:
    """An agent of `create_agent`; caching is its own middleware, or none where it has none."""

    def __init__(self, plan: Plan, idiom: str, caching: bool) -> None:
        from langchain.agents import create_agent
        from langchain_core.tools import StructuredTool

        self._keeps = idiom == "kept"
        self._entries = plan["entries"]
        middleware: list[Any] = []
        if caching and plan["vendor"] == "anthropic":
            from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware

            middleware = [AnthropicPromptCachingMiddleware()]
        tool = StructuredTool.from_function(self._look_up, name="look_up", description=plan["tool"])
        self._agent: Any = create_agent(
            _langchain_model(plan), tools=[tool], system_prompt=plan["system"],
            middleware=middleware,
        )  # fmt: skip
        self._turns: list[list[Any]] = []

    def _look_up(self, entry: str) -> str:
        return str(self._entries[entry])

    def ask(self, question: str, notes: str) -> str:
        from langchain_core.messages import HumanMessage

        turn = self._invoke(HumanMessage(f"{notes}\n\n{question}" if notes else question))
        if not self._keeps:
            turn[0] = HumanMessage(question)
        self._turns.append(turn)
        return str(turn[-1].text)

    def compact(self, instruction: str, kept_turns: int) -> None:
        from langchain_core.messages import HumanMessage, merge_message_runs

        summary = self._invoke(HumanMessage(instruction))[-1].text
        first, *kept = self._turns[-kept_turns:]
        # With the question behind it, as one message: Gemini wants roles to alternate.
        opening = merge_message_runs([HumanMessage(f"{SUMMARY}{summary}"), *first])
        self._turns = [opening, *kept]

    def _invoke(self, message: Any) -> list[Any]:
        """The messages of a turn, from the question to the answer."""
        history = [message for turn in self._turns for message in turn]
        state = self._agent.invoke({"messages": [*history, message]})
        return list(state["messages"][len(history) :])


def _langchain_model(plan: Plan) -> Any:
    match plan["vendor"]:
        case "openai":
            from langchain_openai import ChatOpenAI

            return ChatOpenAI(
                model=plan["model"], base_url=f"{plan['url']}/v1", api_key=KEY, max_retries=0,
                use_responses_api=False,
            )  # fmt: skip
        case "anthropic":
            from langchain_anthropic import ChatAnthropic

            return ChatAnthropic(
                model=plan["model"], base_url=plan["url"], api_key=KEY, max_retries=0
            )
        case _:
            from langchain_google_genai import ChatGoogleGenerativeAI

            return ChatGoogleGenerativeAI(
                model=plan["model"], base_url=plan["url"], google_api_key=KEY, max_retries=1
            )


class PydanticAI:
    """An agent with a tool, whose history is what its runs give back."""

    def __init__(self, plan: Plan, idiom: str, caching: bool) -> None:
        from pydantic_ai import Agent, Tool

        entries = plan["entries"]

        def look_up(entry: str) -> str:
            return str(entries[entry])

        self._in_instructions = idiom == "instructions"
        self._notes = ""
        self._turns: list[list[Any]] = []
        # The one setting for every vendor: instructions, tools and the conversation.
        settings: Any = {"cache": True} if caching else {}
        self._agent: Any = Agent(
            _pydantic_model(plan),
            instructions=plan["system"],
            tools=[Tool(look_up, name="look_up", description=plan["tool"])],
            model_settings=settings,
            retries=0,
        )
        if self._in_instructions:
            self._agent.instructions(lambda: self._notes or None)

    def ask(self, question: str, notes: str) -> str:
        self._notes = notes
        inlined = notes and not self._in_instructions
        result = self._run(f"{notes}\n\n{question}" if inlined else question)
        self._turns.append(result.new_messages())
        return str(result.output)

    def compact(self, instruction: str, kept_turns: int) -> None:
        from pydantic_ai.messages import ModelRequest, UserPromptPart

        summary = self._run(instruction).output
        opening = ModelRequest(parts=[UserPromptPart(f"{SUMMARY}{summary}")])
        self._turns = [[opening], *self._turns[-kept_turns:]]

    def _run(self, prompt: str) -> Any:
        history = [message for turn in self._turns for message in turn]
        return self._agent.run_sync(prompt, message_history=history)


def _pydantic_model(plan: Plan) -> Any:
    match plan["vendor"]:
        case "openai":
            from pydantic_ai.models.openai import OpenAIChatModel
            from pydantic_ai.providers.openai import OpenAIProvider

            provider: Any = OpenAIProvider(base_url=f"{plan['url']}/v1", api_key=KEY)
            return OpenAIChatModel(plan["model"], provider=provider)
        case "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            provider = AnthropicProvider(base_url=plan["url"], api_key=KEY)
            return AnthropicModel(plan["model"], provider=provider)
        case _:
            from pydantic_ai.models.google import GoogleModel
            from pydantic_ai.providers.google import GoogleProvider

            provider = GoogleProvider(base_url=plan["url"], api_key=KEY)
            return GoogleModel(plan["model"], provider=provider)


def move_clock(url: str, seconds: float) -> None:
    request = urllib.request.Request(
        f"{url}/emulator/clock", json.dumps({"move": seconds}).encode(), method="POST"
    )
    urllib.request.urlopen(request).close()


def play(plan: Plan, peer: Peer, notes: Notes) -> list[str]:
    answers = []
    for turn in plan["turns"]:
        move_clock(plan["url"], turn["idle"])
        number = turn["number"]
        answers.append(peer.ask(turn["question"], notes.take(turn["notes"], number)))
        if number == plan["compacted_after"]:
            peer.compact(plan["instruction"], plan["kept_turns"])
            notes.forget(number - plan["kept_turns"] + 1)
    return answers


def main() -> int:
    library, idiom, caching = sys.argv[1:4]
    plan = json.load(sys.stdin)
    kinds: dict[str, Any] = {"langchain": LangChain, "pydantic-ai": PydanticAI}
    answers = play(plan, kinds[library](plan, idiom, caching == "on"), Notes(idiom))
    packages = LIBRARIES[library][plan["vendor"]]
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    print(json.dumps({"answers": answers, "version": versions}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
