"""LangChain with Gemini at the address that is given: chats, streams, tools, types, pictures.

Run by `long_langchain_gemini.py` in an environment of its own, so it imports nothing of Lamina.
"""

import sys
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_google_genai import ChatGoogleGenerativeAI
from pydantic import BaseModel

KEY = "sk-tests-0123456789abcdefghij"


class Weather(BaseModel):
    """The weather in a city."""

    city: str
    degrees: int


def weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: 7 degrees"


def main(url: str, picture: str) -> None:
    for name in ("gemini-2.5-flash", "gemini-3.1-pro-preview"):
        model = ChatGoogleGenerativeAI(model=name, base_url=url, google_api_key=KEY, max_retries=1)
        answer = model.invoke("Hello there, in words?")
        # One text, not a list of words; from Gemini 3 on LangChain always gives blocks.
        texts = [answer.content] if isinstance(answer.content, str) else answer.content
        assert len(texts) == 1, answer.content
        assert name.startswith("gemini-3") or isinstance(answer.content, str), answer.content
        assert answer.text == "You said: Hello there, in words?", answer.content
        second = model.invoke([HumanMessage("Hello?"), answer, HumanMessage("And again?")])
        assert second.text == "You said: And again?", second.content
        whole: Any = None
        for chunk in model.stream([HumanMessage([
            {"type": "image", "base64": picture, "mime_type": "image/png"},
            {"type": "text", "text": "What is it?"},
        ])]):  # fmt: skip
            whole = chunk if whole is None else whole + chunk
        assert whole.text == "You said: What is it?", whole.content
        assert whole.usage_metadata["input_tokens"] > 0
        for method in ("json_schema", "function_calling"):
            typed = model.with_structured_output(Weather, method=method).invoke("Oslo?")
            assert typed == Weather(city="You said: Oslo?", degrees=0), typed
        agent: Any = create_agent(model, tools=[weather])
        state = agent.invoke({"messages": [HumanMessage("Oslo?")]})
        assert isinstance(state["messages"][-1], AIMessage)
        forced = model.bind_tools([weather], tool_choice="any")
        call = forced.invoke("Oslo?")
        assert [made["name"] for made in call.tool_calls] == ["weather"]
        history = [
            HumanMessage("Oslo?"), call,
            *[{"role": "tool", "content": "7", "tool_call_id": c["id"]} for c in call.tool_calls],
        ]  # fmt: skip
        assert model.bind_tools([weather]).invoke(history).text


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
