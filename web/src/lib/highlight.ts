/** Code highlighting: comments, strings, numbers, keywords and called names. One reader handles all languages
 * with a few markers; anything unknown stays plain. A library with a grammar per language would be a tenth
 * of the whole app. */

const WORDS = new Set(
  (
    "and as assert async await begin boolean break by case catch char class const continue create def default defer del " +
    "delete do done double echo elif else elsif end enum esac except export extends extern false False fi final finally " +
    "float fn for from func function global go group having if impl implements import in inner insert instanceof int " +
    "interface into is join lambda left let limit local long loop match mod module mut namespace new nil None nonlocal " +
    "not null on or order override package pass primary private protected pub public raise ref return returns select self " +
    "set short static string struct super switch table then this throw trait true True try type typeof undefined union " +
    "unless until update use using val values var void volatile where while with yield"
  ).split(" "),
);
const HASH = new Set(["bash", "sh", "shell", "zsh", "console", "python", "py", "ruby", "rb", "yaml", "yml", "toml", "r", "perl", "make", "dockerfile", "ini", "conf", "nix", "elixir", "julia"]);
const DASHES = new Set(["sql", "lua", "haskell", "hs", "elm", "ada"]);
const SLASHES = new Set(["js", "javascript", "jsx", "ts", "typescript", "tsx", "java", "c", "cpp", "c++", "h", "cs", "csharp", "go", "rust", "rs", "swift", "kotlin", "kt", "scala", "php", "dart", "zig", "css", "scss", "json", "json5", "jsonc", "proto"]);
const LONGEST = 50_000;

const escape = (text: string): string => text.replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign] ?? sign);
const mark = (kind: string, text: string): string => `<span class="hl-${kind}">${escape(text)}</span>`;

function reader(comment: string): RegExp {
  return new RegExp(
    `(?<comment>${comment})|(?<string>"""[\\s\\S]*?"""|'''[\\s\\S]*?'''|"(?:\\\\.|[^"\\\\\\n])*"?|'(?:\\\\.|[^'\\\\\\n])*'|\`(?:\\\\.|[^\`\\\\])*\`)` +
      "|(?<number>\\b(?:0[xb][\\da-f]+|\\d[\\d_]*(?:\\.\\d+)?(?:e[+-]?\\d+)?)\\b)|(?<key>[\\w-]+(?=\\s*:\\s))|(?<word>[A-Za-z_$][\\w$]*)(?<call>\\s*\\()?",
    "gi",
  );
}

function diff(code: string): string {
  const kinds: Record<string, string> = { "+": "added", "-": "gone", "@": "number" };
  return code.split("\n").map((line) => (kinds[line[0] ?? ""] ? mark(kinds[line[0] ?? ""] as string, line) : escape(line))).join("\n");
}

function tags(code: string): string {
  return code.replace(/(<!--[\s\S]*?-->)|(<\/?[\w:-]+)|([\w:-]+)(=)("[^"]*"|'[^']*')|[&<>"]/g, (all: string, comment?: string, tag?: string, name?: string, _sign?: string, value?: string) => {
    if (comment) return mark("comment", comment);
    if (tag) return mark("word", tag);
    return name && value ? `${mark("name", name)}=${mark("string", value)}` : escape(all);
  });
}

/** Highlighted code, or nothing for an unknown language: that is shown as plain text. */
export function highlight(code: string, language: string): string {
  const name = language.trim().toLowerCase().split(/[\s,{]/)[0] ?? "";
  if (code.length > LONGEST) return "";
  if (name === "diff" || name === "patch") return diff(code);
  if (["html", "xml", "svg", "vue", "svelte"].includes(name)) return tags(code);
  const comment = HASH.has(name) ? "#.*" : DASHES.has(name) ? "--.*" : SLASHES.has(name) ? "\\/\\/.*|\\/\\*[\\s\\S]*?\\*\\/" : "";
  if (!comment) return "";
  const isSql = name === "sql";
  let html = "";
  let at = 0;
  for (const hit of code.matchAll(reader(comment))) {
    const parts = hit.groups ?? {};
    html += escape(code.slice(at, hit.index));
    at = hit.index + hit[0].length;
    if (parts.comment) html += mark("comment", parts.comment);
    else if (parts.string) html += mark(/^\s*:/.test(code.slice(at, at + 4)) ? "name" : "string", parts.string);
    else if (parts.number) html += mark("number", parts.number);
    else if (parts.key) html += mark("name", parts.key);
    else if (WORDS.has(isSql ? (parts.word ?? "").toLowerCase() : (parts.word ?? ""))) html += mark("word", parts.word ?? "") + escape(parts.call ?? "");
    else html += (parts.call ? mark("name", parts.word ?? "") : escape(parts.word ?? "")) + escape(parts.call ?? "");
  }
  return html + escape(code.slice(at));
}
