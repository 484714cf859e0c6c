import { expect, it } from "vitest";
import { barsOf, besideWords, fillDays, limitOf, shareOf, spentWords } from "./sums";
import type { SpendRow } from "./types";

const row = (more: Partial<SpendRow>): SpendRow => ({ name: "2026-11-17", requests: 2, spent: 1, assumed: 0, unpriced: 0, input: 10, cached: 0, output: 1, ...more });

it("never calls what has no price free", () => {
  expect(spentWords(row({ spent: null, unpriced: 2 }))).toBe("unknown");
  expect(spentWords(row({ spent: 0 }))).toBe("$0");
  expect(besideWords(row({ assumed: 0.25, unpriced: 1 }))).toBe("up to ~$0.25 more · 1 request of unknown price");
  expect(barsOf([row({ unpriced: 2, spent: null })])[0]?.isUnknown).toBe(true);
});

it("draws what is known and what is assumed on one scale", () => {
  const [one, two] = barsOf([row({ spent: 3, assumed: 1 }), row({ spent: 1 })]);
  expect([one?.spent, one?.assumed, two?.spent]).toEqual([0.75, 0.25, 0.25]);
});

it("does not call an unreported cache 0%", () => {
  expect(shareOf(row({}))).toBeNull();
  expect(shareOf(row({ cached: 5 }))).toBe(0.5);
});

it("shows days without requests, too", () => {
  const days = fillDays([row({ name: "2026-11-15" })], "2026-11-17");
  expect(fillDays([row({ name: "2026-11-18" })], "2026-11-17").map((day) => day.name)).toEqual(["2026-11-18"]);
  expect(days.map((day) => [day.name, day.requests])).toEqual([["2026-11-17", 0], ["2026-11-16", 0], ["2026-11-15", 2]]);
});

it("counts what is reserved against the limit", () => {
  expect(limitOf(1, 0.5, 2)).toEqual({ used: 0.75, left: 0.5, isOver: false });
  expect(limitOf(2, 0.5, 2)).toEqual({ used: 1, left: 0, isOver: true });
  expect(limitOf(2, 0, null)).toBeNull();
});
