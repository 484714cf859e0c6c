/** Spending in bars and words. Law: a sum says what it excludes; unknown is not 0. */

import { cachedShare, count, money } from "../../lib/numbers";
import type { SpendEntry, SpendRow } from "./types";

export type Grouping = "day" | "model" | "session";
export const GROUPINGS: readonly Grouping[] = ["day", "model", "session"];

export interface SpendBar {
  row: SpendRow;
  /** Of the longest bar, 0 to 1. */
  spent: number;
  /** Upper limits for answers without reported usage, drawn after known costs. */
  assumed: number;
  /** Whether part of it has no price at all. */
  hasUnknown: boolean;
  isUnknown: boolean;
}

export function barsOf(rows: readonly SpendRow[]): SpendBar[] {
  const most = Math.max(0, ...rows.map((row) => (row.spent ?? 0) + row.assumed)) || 1;
  return rows.map((row) => ({
    row,
    spent: (row.spent ?? 0) / most,
    assumed: row.assumed / most,
    hasUnknown: row.unpriced > 0,
    isUnknown: row.requests > 0 && row.unpriced === row.requests,
  }));
}

/** The known costs of a row. */
export function spentWords(row: SpendRow): string {
  return money(row.spent, { estimated: false });
}

export function besideWords(row: SpendRow): string {
  return [
    row.assumed > 0 ? `up to ${money(row.assumed)} more` : "",
    row.unpriced > 0 ? `${count(row.unpriced, "request")} of unknown price` : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

/** The cached share of a row's input. A sum does not reveal which usages were reported: a row without cached
 * tokens may be unreported, and is not shown as 0%. */
export function shareOf(row: SpendRow): number | null {
  return row.cached > 0 ? cachedShare(row.input, row.cached) : null;
}

/** All days from the first to the last, including those without spending. */
export function fillDays(rows: readonly SpendRow[], today: string): SpendRow[] {
  const days = rows.map((row) => row.name).filter((name) => /^\d{4}-\d{2}-\d{2}$/.test(name));
  if (!days.length) return [...rows];
  const known = new Map(rows.map((row) => [row.name, row]));
  const first = days.reduce((a, b) => (a < b ? a : b));
  // The server's day may be ahead of this browser's.
  const last = days.reduce((a, b) => (a > b ? a : b), today);
  const filled: SpendRow[] = [];
  const at = new Date(`${last}T00:00:00Z`);
  for (let name = last; name >= first && filled.length < 400; ) {
    filled.push(known.get(name) ?? { name, requests: 0, spent: 0, assumed: 0, unpriced: 0, input: 0, cached: 0, output: 0 });
    at.setUTCDate(at.getUTCDate() - 1);
    name = at.toISOString().slice(0, 10);
  }
  return filled;
}

/** The state of a limit: the used share, including reservations. */
export function limitOf(known: number | null, reserved: number, limit: number | null): { used: number; left: number; isOver: boolean } | null {
  if (limit === null) return null;
  const spent = known ?? 0;
  const used = limit > 0 ? (spent + reserved) / limit : 1;
  return { used: Math.min(1, used), left: Math.max(0, limit - spent - reserved), isOver: spent + reserved >= limit };
}

export const PURPOSES: Record<SpendEntry["purpose"], string> = {
  answer: "an answer",
  plan: "a plan of tool calls",
  summary: "a summary of history",
  cache: "creating an explicit cache",
  storage: "storing an explicit cache",
};

export const SPANS = [
  { value: "today", label: "Today" },
  { value: "7d", label: "7 days" },
  { value: "30d", label: "30 days" },
  { value: "90d", label: "90 days" },
  { value: "all", label: "Everything" },
] as const;
