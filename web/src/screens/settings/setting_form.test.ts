import { describe, expect, it } from "vitest";
import { changesOf, defaultWords, fieldOf, groupsOf, isChanged, nameOf, parse, piecesOf, type Setting } from "./setting_form";

const row = (more: Partial<Setting>): Setting => ({
  name: "window",
  group: "limits",
  kind: "integer",
  value: null,
  default: null,
  choices: [],
  nullable: true,
  help: "How large a request may be.",
  ...more,
});

describe("what was typed", () => {
  it("is a number where one is wanted", () => {
    expect(parse(row({}), "32,000")).toEqual({ value: 32000 });
    expect(parse(row({}), "")).toEqual({ value: null });
    expect(parse(row({ nullable: false }), "")).toEqual({ error: "Enter a number." });
    expect(parse(row({}), "1.5")).toEqual({ error: "Enter a whole number." });
    expect(parse(row({ kind: "number" }), "0.25")).toEqual({ value: 0.25 });
    expect(parse(row({ kind: "number" }), "much")).toEqual({ error: "“much” is not a number." });
  });

  it("is one of the choices, a list, or on and off", () => {
    expect(parse(row({ kind: "choice", choices: ["lazy", "eager"], nullable: false }), "eager")).toEqual({ value: "eager" });
    expect(parse(row({ kind: "texts" }), " a.org, b.org\n")).toEqual({ value: ["a.org", "b.org"] });
    expect(parse(row({ kind: "boolean" }), "false")).toEqual({ value: false });
  });

  it("is sent only if it differs from what is there", () => {
    const rows = [row({ value: 8000 }), row({ name: "top", kind: "number", value: 1, default: 1 }), row({ name: "bad" })];
    expect(changesOf(rows, { window: "8000", top: "0.5", bad: "x" })).toEqual({
      settings: { top: 0.5 },
      errors: { bad: "“x” is not a number." },
    });
    expect(changesOf(rows, {})).toEqual({ settings: {}, errors: {} });
  });

  it("comes back as it is when nothing was typed over it", () => {
    for (const value of [null, 3, 0.5, true, "a", ["x", "y"]]) {
      const kind = value === null || value === 3 ? "integer" : value === 0.5 ? "number" : value === true ? "boolean" : value === "a" ? "text" : "texts";
      expect(parse(row({ kind }), fieldOf(value))).toEqual({ value });
    }
  });
});

it("rows are grouped in their order, and found by words of name and help", () => {
  const rows = [row({}), row({ name: "web", group: "safety", help: "" }), row({ name: "max_tokens", value: 5 })];
  expect(groupsOf(rows, "", false).map((group) => [group.name, group.rows.length])).toEqual([["limits", 2], ["safety", 1]]);
  expect(groupsOf(rows, "max tokens", false)[0]?.rows[0]?.name).toBe("max_tokens");
  expect(groupsOf(rows, "", true).flatMap((group) => group.rows.map((each) => each.name))).toEqual(["max_tokens"]);
});

it("a list that is equal is not changed", () => {
  expect(isChanged(row({ kind: "texts", value: [], default: [] }))).toBe(false);
  expect(isChanged(row({ value: 0, default: null }))).toBe(true);
});

it("names and helps are written for people", () => {
  expect([nameOf({ name: "cache_lifetime_s" }), nameOf({ name: "guide_search.top_n" })]).toEqual(["cache lifetime (seconds)", "top n"]);
  expect(piecesOf("as `low`.")).toEqual([{ text: "as ", code: false }, { text: "low", code: true }, { text: ".", code: false }]);
});

it("defaults are said in words", () => {
  expect([defaultWords(row({})), defaultWords(row({ default: false })), defaultWords(row({ default: "" })), defaultWords(row({ default: 2 }))]).toEqual([
    "none", "off", "empty", "2",
  ]);
});
