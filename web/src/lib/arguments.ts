/** The arguments of a call as a person reads them: by name, with long texts apart, and changes to a file as
 * removed and added lines. */

export interface Argument {
  name: string;
  text: string;
  /** More than one line, or too long for one. */
  long: boolean;
}

export interface Change {
  before: string;
  after: string;
}

export interface ReadableCall {
  arguments: Argument[];
  /** The file that the call names, if any. */
  path: string;
  changes: Change[];
  /** The model's text if it is not a JSON object. */
  raw: string;
}

// Argument names that tools use for replaced text.
const PAIRS = [
  ["old_string", "new_string"],
  ["old_str", "new_str"],
  ["old_text", "new_text"],
  ["oldText", "newText"],
  ["old", "new"],
  ["search", "replace"],
  ["before", "after"],
] as const;
const PATHS = ["path", "file_path", "file", "filename", "target_file"];
const WHOLE = ["content", "contents", "file_text", "text"];

type Fields = Record<string, unknown>;

function changeOf(fields: Fields): { change: Change; used: string[] } | null {
  for (const [before, after] of PAIRS) {
    if (typeof fields[before] === "string" && typeof fields[after] === "string") {
      return { change: { before: fields[before], after: fields[after] }, used: [before, after] };
    }
  }
  return null;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** Parses the JSON text of a call. `name` decides whether a whole text is file content. */
export function readCall(text: string, name = ""): ReadableCall {
  let fields: Fields;
  try {
    const parsed: unknown = JSON.parse(text || "{}");
    if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) throw new Error("no object");
    fields = parsed as Fields;
  } catch {
    return { arguments: [], path: "", changes: [], raw: text };
  }
  const used = new Set<string>();
  const changes: Change[] = [];
  const place = PATHS.find((key) => typeof fields[key] === "string");
  const own = changeOf(fields);
  if (own) {
    changes.push(own.change);
    own.used.forEach((key) => used.add(key));
  }
  if (Array.isArray(fields.edits)) {
    const found = fields.edits.map((edit) => (typeof edit === "object" && edit ? changeOf(edit as Fields) : null));
    if (found.length && found.every(Boolean)) {
      changes.push(...found.map((one) => (one as { change: Change }).change));
      used.add("edits");
    }
  }
  const whole = WHOLE.find((key) => typeof fields[key] === "string");
  if (!changes.length && place && whole && /write|create|save|append|put/i.test(name)) {
    changes.push({ before: "", after: fields[whole] as string });
    used.add(whole);
  }
  const rest = Object.entries(fields)
    .filter(([key]) => !used.has(key))
    .map(([key, value]) => {
      const shown = textOf(value);
      return { name: key, text: shown, long: shown.includes("\n") || shown.length > 100 };
    });
  return { arguments: rest, path: place ? String(fields[place]) : "", changes, raw: "" };
}

export interface Line {
  kind: "same" | "gone" | "new";
  text: string;
}

const MOST = 2000;

/** Compares two texts line by line, by their longest common run; very long ones are shown whole. */
export function diffLines({ before, after }: Change): Line[] {
  // A final line break ends a line and does not start another.
  const linesOf = (text: string): string[] => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));
  const [a, b] = [linesOf(before), linesOf(after)];
  if (a.length * b.length > MOST * MOST) {
    return [...a.map((text): Line => ({ kind: "gone", text })), ...b.map((text): Line => ({ kind: "new", text }))];
  }
  const width = b.length + 1;
  const table = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      table[i * width + j] =
        a[i] === b[j]
          ? (table[(i + 1) * width + j + 1] ?? 0) + 1
          : Math.max(table[(i + 1) * width + j] ?? 0, table[i * width + j + 1] ?? 0);
    }
  }
  const lines: Line[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: "same", text: a[i] as string });
      i++;
      j++;
    } else if (i < a.length && (j >= b.length || (table[(i + 1) * width + j] ?? 0) >= (table[i * width + j + 1] ?? 0))) {
      lines.push({ kind: "gone", text: a[i++] as string });
    } else {
      lines.push({ kind: "new", text: b[j++] as string });
    }
  }
  return lines;
}
