import { describe, expect, test } from "vitest";
import { apply, begin, closingWords } from "./live";

const REQUEST = { target: "fake:model", context: { target: "fake:model" }, layers: [{ layer: "L1", tokens: 20 }, { layer: "L5", tokens: 5 }] };
const CALL = { type: "tool_call", id: "c1", name: "read_file", arguments: '{"path":"a.md"}', signature: "" };

/** An agent's turn with one tool, as `lamina rpc` writes it: members with their defaults are missing. */
const EVENTS = [
  { type: "request", request: "r1", ...REQUEST },
  { type: "reading", done: 5, total: 25 },
  { type: "block_start", index: 0, kind: "thinking" },
  { type: "block_delta", index: 0, text: "Look " },
  { type: "block_delta", index: 0, text: "first." },
  { type: "block_end", index: 0 },
  { type: "block_start", index: 1, kind: "action", name: "read_file" },
  { type: "block_delta", index: 1, text: '{"path":"a.md"}' },
  { type: "block_end", index: 1 },
  { type: "usage", request: "r1", usage: { input: 25, output: 9 }, cost: 0.001, total_s: 0.4 },
  { type: "tool_call", call: CALL, label: "Read file" },
  { type: "tool_result", result: { type: "tool_result", call_id: "c1", name: "read_file", text: "noon" }, seconds: 0.2 },
  { type: "warning", text: "b.md was left out" },
  { type: "request", request: "r2", ...REQUEST },
  { type: "block_start", index: 0, kind: "text" },
  { type: "block_delta", index: 0, text: "At " },
  { type: "block_delta", index: 0, text: "noon." },
  { type: "block_end", index: 0 },
  { type: "usage", request: "r2", usage: { input: 40, cached: 25, output: 3 }, first_s: 0.1, total_s: 0.3 },
  { type: "end", ending: "answered", answer: "At noon.", requests: 2 },
];

function play(events: readonly object[]): ReturnType<typeof begin> {
  const turn = begin();
  for (const event of events) apply(turn, event as never);
  return turn;
}

describe("events to view", () => {
  test("of a turn with a tool", () => {
    const turn = play(EVENTS);
    expect(turn.steps.map((step) => [step.request, step.tokens, step.parts, step.calls, step.cost, step.total_s])).toEqual([
      [
        "r1",
        25,
        [{ kind: "thinking", index: 0, text: "Look first.", open: false }],
        [{ id: "c1", name: "read_file", label: "Read file", arguments: '{"path":"a.md"}', state: "done", result: "noon", seconds: 0.2 }],
        0.001,
        0.4,
      ],
      ["r2", 25, [{ kind: "text", index: 0, text: "At noon.", open: false }], [], null, 0.3],
    ]);
    expect(turn.warnings).toEqual(["b.md was left out"]);
    expect(closingWords(turn)).toBe("done, 2 words");
  });

  test("at every moment says what is going on", () => {
    const phases = EVENTS.map((_, end) => play(EVENTS.slice(0, end + 1)).phase);
    expect([...new Set(phases)]).toEqual([
      "waiting for the model",
      "reading the prompt",
      "thinking",
      "writing a call to read_file",
      "Read file runs",
      "answering",
      "",
    ]);
  });

  test("drops what a retry makes void", () => {
    const turn = play([...EVENTS.slice(13, 16), { type: "retry", reason: "too long" }, ...EVENTS.slice(13)]);
    expect(turn.steps.length).toBe(1);
    expect(turn.steps[0]?.parts[0]?.text).toBe("At noon.");
  });

  test("shows what hooks made of an answer", () => {
    const turn = play([...EVENTS.slice(13, 18), { type: "answer_changed", hooks: ["tone"], text: "Noon." }]);
    expect(turn.steps[0]?.parts).toEqual([{ kind: "text", index: -1, text: "Noon.", open: false }]);
  });

  test("of calls that wait and are decided", () => {
    const wants = { type: "approval", call: CALL, tool: { label: "Read file" } };
    const turn = play([EVENTS[0]!, wants, { type: "end", ending: "waiting", answer: "" }]);
    expect(turn.steps[0]?.calls[0]?.state).toBe("waiting");
    expect(closingWords(turn)).toBe("waiting for you");
    const denied = play([EVENTS[0]!, wants, { type: "decision", call_id: "c1", decision: "deny" }]);
    expect(denied.steps[0]?.calls[0]?.state).toBe("denied");
  });

  test("of a turn that failed", () => {
    const turn = play([EVENTS[0]!, { type: "failed", code: "spend_limit", message: "the day's limit is reached" }]);
    expect(turn.failed).toEqual({ code: "spend_limit", message: "the day's limit is reached" });
    expect(closingWords(turn)).toContain("the day's limit");
  });

  test("of kinds it does not know changes nothing", () => {
    expect(play([{ type: "tomorrow", what: 1 }])).toEqual(begin());
  });
});
