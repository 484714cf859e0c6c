import { describe, expect, it } from "vitest";
import type { ComparedSegment, RequestDifference, RequestSummary } from "./types";
import { baseOf, costWords, groupSegments, headline, optionWords, plainLines } from "./words";

const request = (more: Partial<RequestSummary>): RequestSummary =>
  ({ id: "r1", number: 1, base: "", question_text: "When?", step: "question", active: true, ...more }) as RequestSummary;

const difference = (more: object): RequestDifference => ({ agree: 9100, of: 10240, again: 1140, price: 0.003, moved: null, ...more }) as RequestDifference;
const moved = { byte: 31418, expected: false };

describe("the other request", () => {
  const requests = [request({ id: "a" }), request({ id: "b", number: 2 }), request({ id: "c", number: 3, base: "a" })];
  it("is the one it was compared with when it was sent, else the one before", () => {
    expect(baseOf(requests, "c")).toBe("a");
    expect(baseOf(requests, "b")).toBe("a");
    expect(baseOf(requests, "a")).toBe("");
    expect(baseOf(requests, "gone")).toBe("");
  });
  it("is listed by number, question and branch", () => {
    expect(optionWords(request({ number: 7, active: false, question_text: "x".repeat(60) }))).toBe(`7 · ${"x".repeat(47)}… · other branch`);
  });
});

describe("words", () => {
  it("say where the two part", () => {
    expect(headline(difference({ moved }))).toBe("9,100 of 10,240 tokens match; they diverge at byte 31,418");
    expect(headline(difference({ moved: { ...moved, expected: true } }))).toContain("new content starts at byte 31,418");
    expect(headline(difference({}))).toContain("nothing moved, and the rest is new");
    expect(headline(difference({ moved, agree: 10240 }))).toBe("All 10,240 tokens match; the other request continues from byte 31,418");
  });
  it("never call an unknown price nothing", () => {
    expect(costWords(difference({ moved, price: null }))).toBe("1,140 tokens again, price unknown");
    expect(costWords(difference({ moved }))).toBe("1,140 tokens again, ~$0.0030 more than reading them");
    expect(costWords(difference({ moved, again: 0 }))).toBe("nothing is processed again");
  });
  it("give the lines as plain text", () => {
    expect(
      plainLines([
        { mark: "removed", text: "Be brief.", before: 1, after: null },
        { mark: "added", text: "Be brief. It is noon.", before: null, after: 1 },
        { mark: "gap", text: "", before: null, after: null },
      ]),
    ).toBe("- Be brief.\n+ Be brief. It is noon.\n⋯");
  });
});

describe("segments", () => {
  const segment = (index: number, status: ComparedSegment["status"], agrees = true): ComparedSegment =>
    ({ index, status, agrees, tokens: 10, layer: "L4", label: `m${index}` }) as ComparedSegment;
  it("that were kept are one row, and no token is lost", () => {
    const groups = groupSegments([segment(0, "kept"), segment(1, "kept"), segment(2, "removed"), segment(2, "added", false), segment(3, "kept", false)]);
    expect(groups.map((group) => [group.status, group.segments.length, group.tokens])).toEqual([
      ["kept", 2, 20],
      ["removed", 1, 10],
      ["added", 1, 10],
      ["kept", 1, 10],
    ]);
  });
});
