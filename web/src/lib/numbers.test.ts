import { describe, expect, test } from "vitest";
import { ago, bytes, cachedShare, count, dollars, exact, money, moneyRange, percent, score, seconds, short } from "./numbers";
import { cachedOf, usageLine } from "./usage";

describe("the numbers law", () => {
  test("says unknown where nobody knows, never 0", () => {
    for (const tell of [short, exact, money, percent, seconds, bytes, score, ago]) expect(tell(null)).toBe("unknown");
    expect(moneyRange(null, null)).toBe("unknown");
    expect(cachedShare(100, null)).toBeNull();
    expect(cachedShare(0, 0)).toBeNull();
  });

  // The same table as in tests/core/text/test_dollars.py.
  test.each([
    [0, "$0"],
    [0.00000004, "under $0.000001"],
    [0.00012, "$0.000120"],
    [0.0009, "$0.000900"],
    [0.00213, "$0.0021"],
    [0.0421, "$0.0421"],
    [0.0994, "$0.0994"],
    [0.0996, "$0.10"],
    [12.5, "$12.50"],
    [1234.5, "$1,234.50"],
    [-0.0421, "-$0.0421"],
    [-3, "-$3.00"],
  ])("%d dollars are written %s", (amount, text) => {
    expect(dollars(amount)).toBe(text);
  });

  test("an estimate carries a tilde", () => {
    expect(money(0.0042)).toBe("~$0.0042");
    expect(money(1.5)).toBe("~$1.50");
    expect(money(0)).toBe("~$0");
    expect(money(1e-8)).toBe("under $0.000001");
    expect(money(1.5, { estimated: false })).toBe("$1.50");
    expect(moneyRange(0.003, 0.0112)).toBe("~$0.0030 to ~$0.0112");
    expect(moneyRange(0.00311, 0.00313)).toBe("~$0.0031");
  });

  test("all and nothing are said only of all and nothing", () => {
    expect(percent(0.9996)).toBe(">99%");
    expect(percent(0.0004)).toBe("<1%");
    expect(percent(1)).toBe("100%");
    expect(percent(0)).toBe("0%");
    expect(percent(0.913)).toBe("91%");
    expect(percent(0.9312, 1)).toBe("93.1%");
  });

  test("cached is a part of the input, and never more", () => {
    expect(cachedShare(16100, 14651)).toBeCloseTo(0.91);
    expect(cachedShare(100, 120)).toBe(1);
  });

  test("counts are short in lines and exact in tables", () => {
    expect([999, 1000, 16104, 99_949, 99_951, 999_949, 999_950, 1_234_567].map(short)).toEqual(["999", "1.0k", "16.1k", "99.9k", "100k", "1000k", "1.0M", "1.2M"]);
    expect(exact(16104)).toBe("16,104");
    expect(count(1, "tool")).toBe("1 tool");
    expect(count(2, "match", "matches")).toBe("2 matches");
  });

  test("times and sizes", () => {
    expect([0.0421, 0.7, 4.13, 45.2, 600, 9000].map(seconds)).toEqual(["42 ms", "0.7 s", "4.1 s", "45 s", "10 min", "2.5 h"]);
    expect([12, 1234, 53_000, 2.4e9].map(bytes)).toEqual(["12 B", "1.2 kB", "53 kB", "2.4 GB"]);
    const now = new Date("2026-11-18T12:00:00Z");
    expect(ago(now.getTime() / 1000 - 5, now)).toBe("now");
    expect(ago(now.getTime() / 1000 - 720, now)).toBe("12 min");
  });
});

describe("the usage line", () => {
  const figures = { cost: 0.004, first_s: 0.2, total_s: 0.7 };

  test("says what went in, what of it was cached, what came out", () => {
    const usage = { input: 16100, cached: 14651, output: 88 } as never;
    expect(usageLine({ ...figures, usage })).toBe("in 16.1k (91% cached) · out 88 · 0.7 s · $0.0040");
  });

  test("of an answer that was stopped before anybody counted is no row of zeros", () => {
    expect(usageLine({ ...figures, cost: 0, usage: { cache_reported: false } as never })).toBe("usage not reported");
    expect(usageLine({ ...figures, usage: null })).toBe("usage not reported");
  });

  test("tells a cache that was not reported from one that read nothing", () => {
    expect(cachedOf({ input: 10 })).toBe(0);
    expect(cachedOf({ input: 10, cache_reported: false })).toBeNull();
    expect(usageLine({ ...figures, cost: null, usage: { input: 10, output: 1, cache_reported: false } as never })).toBe(
      "in 10 (cached unknown) · out 1 · 0.7 s · price unknown",
    );
  });
});
