/** Settings as form fields: the shown text, the typed text, and the values to send. */

import type { Shapes } from "../../lib/types";

export type Setting = Shapes["SettingRow"];
export type Typed = Readonly<Record<string, string>>;

/** A value as its field shows it; null is an empty field. */
export function fieldOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.join(", ");
  if (typeof value === "object") return JSON.stringify(value);
  return String(value);
}

export const same = (a: unknown, b: unknown): boolean => JSON.stringify(a ?? null) === JSON.stringify(b ?? null);

export const isChanged = (row: Setting): boolean => !same(row.value, row.default);

export type Parsed = { value: unknown } | { error: string };

/** Converts typed text to the value to send. */
export function parse(row: Pick<Setting, "kind" | "nullable" | "choices">, typed: string): Parsed {
  const text = typed.trim();
  if (row.kind === "boolean") return { value: text === "true" };
  if (row.kind === "texts") return { value: text.split(/[,\n]/).map((part) => part.trim()).filter(Boolean) };
  if (text === "" && row.nullable) return { value: null };
  if (row.kind === "choice") return row.choices.includes(text) ? { value: text } : { error: `One of ${row.choices.join(", ")}.` };
  if (row.kind === "text") return { value: typed };
  if (text === "") return { error: "Enter a number." };
  const number = Number(text.replace(/[,_ ](?=\d{3}\b)/g, ""));
  if (!Number.isFinite(number)) return { error: `“${text}” is not a number.` };
  if (row.kind === "integer" && !Number.isInteger(number)) return { error: "Enter a whole number." };
  return { value: number };
}

/** The values to send: changed and valid fields. */
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

/** Rows by group, in their order; only those that contain all words. */
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

/** A help text in pieces: text between backticks is code. */
export const piecesOf = (help: string): { text: string; code: boolean }[] =>
  help.split("`").map((text, place) => ({ text, code: place % 2 === 1 })).filter((piece) => piece.text !== "");

/** A default in words. */
export function defaultWords(row: Setting): string {
  if (row.default === null || row.default === undefined) return "none";
  if (typeof row.default === "boolean") return row.default ? "on" : "off";
  const text = fieldOf(row.default);
  return text === "" ? "empty" : text;
}
