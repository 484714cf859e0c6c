/** The head of a rule or a reference, edited line by line: the rest stays as typed, including comments. */

interface Head {
  /** Its lines, without the fences. */
  lines: string[];
  /** Everything after it. */
  rest: string;
}

const FENCE = /^---[ \t]*\r?\n/;

function split(text: string): Head | null {
  const begin = FENCE.exec(text);
  if (!begin) return null;
  const inside = text.slice(begin[0].length);
  const end = /^---[ \t]*(\r?\n|$)/m.exec(inside);
  if (!end) return null;
  const lines = inside.slice(0, end.index).split("\n").slice(0, -1);
  return { lines, rest: inside.slice(end.index + end[0].length) };
}

/** The lines of a field: its own, and its continuation lines. */
function find(lines: readonly string[], name: string): [number, number] | null {
  const from = lines.findIndex((line) => line.startsWith(`${name}:`));
  if (from < 0) return null;
  let to = from + 1;
  while (to < lines.length && /^(\s+\S|-(\s|$))/.test(lines[to] ?? "")) to++;
  return [from, to];
}

function plain(value: string): string {
  const text = value.trim();
  const quoted = /^"(.*)"$|^'(.*)'$/.exec(text);
  if (quoted) return quoted[1] ?? quoted[2] ?? "";
  return text.replace(/\s+#.*$/, "").trim();
}

/** A field as a text; a list is joined by commas. Empty if missing. */
export function readField(text: string, name: string): string {
  const head = split(text);
  const place = head && find(head.lines, name);
  if (!head || !place) return "";
  const [first = "", ...more] = head.lines.slice(...place);
  const value = plain(first.slice(name.length + 1));
  const items = value.startsWith("[") && value.endsWith("]") ? value.slice(1, -1).split(",") : value ? [value] : [];
  for (const line of more) {
    const item = /^\s*-\s+(.*)$/.exec(line)?.[1];
    if (item !== undefined) items.push(item);
  }
  return items.map(plain).filter(Boolean).join(", ");
}

/** YAML that parses as exactly this text: ambiguous values are quoted. */
export function scalar(value: string): string {
  if (/^[\w][\w ./-]*$/.test(value) && !/^(true|false|null|yes|no|on|off|[\d.]+)$/i.test(value)) return value;
  return JSON.stringify(value);
}

/** The text with a field set, or removed if the value is empty. */
export function withField(text: string, name: string, value: string): string {
  const head = split(text) ?? { lines: [], rest: text };
  const place = find(head.lines, name) ?? [head.lines.length, head.lines.length];
  const line = value === "" ? [] : [`${name}: ${value}`];
  const lines = [...head.lines.slice(0, place[0]), ...line, ...head.lines.slice(place[1])];
  if (!lines.length) return head.rest;
  return `---\n${lines.join("\n")}\n---\n${head.rest}`;
}

/** Converts typed globs (`*.sql, docs/**`) to a list in YAML. */
export function globList(typed: string): string {
  const globs = typed.split(",").map((glob) => glob.trim()).filter(Boolean);
  return globs.length ? `[${globs.map((glob) => JSON.stringify(glob)).join(", ")}]` : "";
}

/** The path of a new rule or reference. */
export function fileOf(kind: "rule" | "reference", name: string): string {
  const stem = name.trim().toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "");
  return `${kind}s/${stem || "new"}.md`;
}

/** The initial text of a new one. */
export function newGuide(name: string, description: string, include: string): string {
  const about = description.trim() ? `description: ${scalar(description.trim())}\n` : "";
  return `---\nname: ${scalar(name.trim())}\n${about}include: ${include}\n---\n\n`;
}
