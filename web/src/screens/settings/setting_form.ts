/** Settings as fields of a form: what is shown, what was typed, and what of it is sent. */

import type { Shapes } from "../../lib/types";

export type Setting = Shapes["SettingRow"];
export type Typed = Readonly<Record<string, string>>;

/** A value as its field shows it; nothing is an empty field. */
export function fieldOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.join(", ");
  if (typeof value === "object") return JSON.stringify(value);
  return String(value);
}

export const same = (a: unknown, b: unknown): boolean => JSON.stringify(a ?? null) === JSON.stringify(b ?? null);

export const isChanged = (row: Setting): boolean => !same(row.value, row.default);

export type Parsed = { value: unknown } | { error: string };

/** What was typed as the value that is sent. */
export function parse(row: Pick<Setting, "kind" | "nullable" | "choices">, typed: string): Parsed {
  const text = typed.trim();
  if (row.kind === "boolean") return { value: text === "true" };
  if (row.kind === "texts") return { value: text.split(/[,\n]/).map((part) => part.trim()).filter(Boolean) };
  if (text === "" && row.nullable) return { value: null };
  if (row.kind === "choice") return row.choices.includes(text) ? { value: text } : { error: `One of ${row.choices.join(", ")}.` };
  if (row.kind === "text") return { value: typed };
  if (text === "") return { error: "A number is needed." };
  const number = Number(text.replace(/[,_ ](?=\d{3}\b)/g, ""));
  if (!Number.isFinite(number)) return { error: `“${text}” is no number.` };
  if (row.kind === "integer" && !Number.isInteger(number)) return { error: "A whole number is needed." };
  return { value: number };
}

/** What is to be sent: the fields that were changed and can be read. */
export function changesOf(rows: readonly Setting[], typed: Typed): { settings: Record<string, unknown>; errors: Record<string, string> } {
  const settings: Record<string, unknown> = {};
  const errors: Record<string, string> = {};
  for (const row of rows) {
    const text = typed[row.name];
    if (text === undefined) continue;
    const parsed = parse(row, text);
    if ("error" in parsed) errors[row.name] = parsed.error;
    else if (!same(parsed.value, row.value)) settings[row.name] = parsed.value;
  }
  return { settings, errors };
}

export interface Group {
  name: string;
  rows: Setting[];
}

/** Rows by group, in the order in which they come; only those that have all the words. */
export function groupsOf(rows: readonly Setting[], words: string, changedOnly: boolean): Group[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const groups = new Map<string, Setting[]>();
  for (const row of rows) {
    const text = `${row.name} ${row.name.replaceAll("_", " ")} ${row.help} ${row.group}`.toLowerCase();
    if (!wanted.every((word) => text.includes(word)) || (changedOnly && !isChanged(row))) continue;
    groups.set(row.group, [...(groups.get(row.group) ?? []), row]);
  }
  return [...groups].map(([name, found]) => ({ name, rows: found }));
}

/** `guide_search.top_n` is a part of `guide_search`. */
export const isPart = (row: Pick<Setting, "name">): boolean => row.name.includes(".");

/** `cache_lifetime_s` in words. */
export const nameOf = (row: Pick<Setting, "name">): string =>
  (row.name.split(".").at(-1) ?? row.name).replace(/_s$/, " (seconds)").replaceAll("_", " ");

/** A help text in pieces: what stands between backticks is code. */
export const piecesOf = (help: string): { text: string; code: boolean }[] =>
  help.split("`").map((text, place) => ({ text, code: place % 2 === 1 })).filter((piece) => piece.text !== "");

/** What a default reads as. */
export function defaultWords(row: Setting): string {
  if (row.default === null || row.default === undefined) return "none";
  if (typeof row.default === "boolean") return row.default ? "on" : "off";
  const text = fieldOf(row.default);
  return text === "" ? "empty" : text;
}
