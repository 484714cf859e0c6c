/** Requests as bars: their parts, heights, and descriptions.
 *
 * Laws: cached and new together are the input. Unknown values have their own kind of bar and add nothing to a
 * sum; they are never drawn as nothing. */

import type { BreakKind } from "../../lib/breaks";
import { count, exact, money, percent, seconds, short } from "../../lib/numbers";
import type { TimelineRow, TimelineTotals } from "./types";

export type Measure = "tokens" | "money" | "seconds";
export type Fill = "cached" | "new" | "unknown" | "lost";

export interface BarPart {
  fill: Fill;
  value: number;
}

export interface Bar {
  parts: BarPart[];
  /** The value without a cache, drawn as a line above. */
  ghost: number | null;
  /** Unknown: the bar is only a sign, without a height of its own. */
  isUnknown: boolean;
}

/** The parts of a bar from the bottom up. */
export function barOf(row: TimelineRow, measure: Measure): Bar {
  if (measure === "tokens") return tokensOf(row);
  if (measure === "money") return moneyOf(row);
  return row.seconds === null ? unknown : { parts: [{ fill: "new", value: row.seconds }], ghost: null, isUnknown: false };
}

const unknown: Bar = { parts: [], ghost: null, isUnknown: true };

function tokensOf(row: TimelineRow): Bar {
  if (row.input === null) {
    // Never answered: our count was sent, and cache use is unknown.
    return row.tokens === null ? unknown : { parts: [{ fill: "unknown", value: row.tokens }], ghost: null, isUnknown: false };
  }
  if (row.cached === null) return { parts: [{ fill: "unknown", value: row.input }], ghost: null, isUnknown: false };
  const cached = Math.min(row.cached, row.input);
  return {
    parts: [
      { fill: "cached", value: cached },
      { fill: "new", value: row.input - cached },
    ].filter((part): part is BarPart => part.value > 0),
    ghost: null,
    isUnknown: false,
  };
}

function moneyOf(row: TimelineRow): Bar {
  if (row.cost === null) return unknown;
  const lost = Math.min(row.cost, Math.max(0, row.broke?.price ?? 0));
  const parts: BarPart[] = [{ fill: "new", value: row.cost - lost }];
  if (lost > 0) parts.push({ fill: "lost", value: lost });
  return { parts, ghost: row.uncached_cost !== null && row.uncached_cost > row.cost ? row.uncached_cost : null, isUnknown: false };
}

export function heightOf(bar: Bar): number {
  return Math.max(bar.ghost ?? 0, bar.parts.reduce((sum, part) => sum + part.value, 0));
}

/** Round axis values from 0 up to at least the greatest value. */
export function ticksOf(greatest: number, wanted = 4): number[] {
  if (!(greatest > 0)) return [0, 1];
  const rough = greatest / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough * 0.999) ?? 10) * power;
  const steps = Math.ceil(greatest / step - 1e-9);
  return Array.from({ length: steps + 1 }, (_, place) => place * step);
}

export function tickWords(value: number, measure: Measure, step: number): string {
  if (value === 0) return "0";
  if (measure === "tokens") return short(value).replace(/\.0(?=[kM])/, "");
  if (measure === "seconds") return seconds(value).replace(".0 ", " ");
  return `$${value.toFixed(Math.min(6, Math.max(0, Math.ceil(-Math.log10(step) + 0.31))))}`;
}

export const LEAST = 9;
export const MOST = 60;

/** The width of a bar with its gap, and of all bars: they fill the available width within limits, beyond which the
 * chart scrolls. */
export function pitchOf(bars: number, room: number): { pitch: number; width: number } {
  const pitch = Math.max(LEAST, Math.min(MOST, bars ? room / bars : MOST));
  return { pitch, width: Math.max(room, pitch * bars) };
}

/** The visible bars. */
export function inSight(bars: number, pitch: number, left: number, room: number): [number, number] {
  const first = Math.max(0, Math.floor(left / pitch) - 2);
  return [first, Math.min(bars, Math.ceil((left + room) / pitch) + 2)];
}

/** The interval of labelled bars, so that labels do not touch. */
export function labelStep(pitch: number, bars: number): number {
  const wide = String(bars).length * 7 + 8;
  return [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((step) => step * pitch >= wide) ?? 1000;
}

/** The sign of a kind of break at a point: each has its own shape, not only a colour. */
export function signOf(kind: BreakKind, x: number, y: number): string {
  if (kind === "moved") return `M${x - 5},${y - 4}h10l-5,8z`;
  if (kind === "expired") return `M${x},${y - 5}l5,5l-5,5l-5,-5z`;
  if (kind === "missed") return `M${x - 5},${y - 3}l2,-2l3,3l3,-3l2,2l-3,3l3,3l-2,2l-3,-3l-3,3l-2,-2l3,-3z`;
  return `M${x - 4},${y}a4,4 0 1 0 8,0a4,4 0 1 0 -8,0z`;
}

const PURPOSES: Record<TimelineRow["purpose"], string> = {
  turn: "request",
  plan: "plan",
  summary: "summary",
  cache: "explicit cache created",
  storage: "explicit cache stored",
  imported: "imported answer",
};

/** The name of a request: its number, or its purpose. */
export function nameOf(row: TimelineRow): string {
  return row.request ? `request ${exact(row.request.number)}` : PURPOSES[row.purpose];
}

/** The list price of reported tokens, which is not an estimate. Losses and savings are estimates, and have a
 * `~`. */
export function paid(cost: number | null): string {
  return money(cost, { estimated: false });
}

/** One request in a line. */
export function describe(row: TimelineRow): string {
  const parts: string[] = [];
  if (row.input === null) parts.push(`not answered, ~${exact(row.tokens)} tokens sent`);
  else if (row.cached === null) parts.push(`${exact(row.input)} tokens in, cached unknown`);
  else parts.push(`${exact(row.input)} tokens in: ${exact(row.cached)} cached, ${exact(row.fresh)} new`);
  if (row.output !== null) parts.push(`${exact(row.output)} out`);
  parts.push(row.cost === null ? "price unknown" : paid(row.cost));
  if (row.seconds !== null) parts.push(seconds(row.seconds));
  return parts.join(" · ");
}

/** The totals: the rate covers only reported requests, unknown ones are counted. */
export function totalWords(totals: TimelineTotals): { hit: string; of: string; cost: string; saved: string; savedOf: string } {
  const apart = [
    totals.unknown ? `${exact(totals.unknown)} unknown` : "",
    totals.unanswered ? `${exact(totals.unanswered)} not answered` : "",
  ].filter(Boolean);
  const unpriced = totals.unpriced ? `, ${count(totals.unpriced, "request")} of unknown price excluded` : "";
  return {
    hit: percent(totals.hit, 1),
    of: [`of ${exact(totals.reported)} reported`, ...apart].join(" · "),
    cost: totals.cost === null ? "unknown" : `${paid(totals.cost)}${unpriced}`,
    saved: money(totals.saved),
    savedOf:
      totals.saved === null || totals.read_discount === null || totals.write_premium === null
        ? "no prices or usage reported"
        : totals.write_premium > 0
          ? `reading saved ${money(totals.read_discount)}, writing cost ${money(totals.write_premium)} extra`
          : "by reading; writing to the cache had no extra cost",
  };
}

/** Up to two chosen requests in the order sent; a third replaces the first. */
export function choose(chosen: readonly string[], id: string): string[] {
  if (chosen.includes(id)) return chosen.filter((other) => other !== id);
  return [...chosen, id].slice(-2);
}

export function inOrder(rows: readonly TimelineRow[], chosen: readonly string[]): string[] {
  return rows.filter((row) => chosen.includes(row.id)).map((row) => row.id);
}
