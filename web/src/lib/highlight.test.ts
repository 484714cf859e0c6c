import { describe, expect, test } from "vitest";
import { highlight } from "./highlight";

const plain = (html: string): string => html.replace(/<[^>]+>/g, "").replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll("&amp;", "&");

const CODE: Record<string, string> = {
  python: 'def f(x: int) -> str:\n    """Doc & <b>."""\n    return f"{x}"  # why\n',
  ts: "const a = { b: 1, 'c': `d${e}` }; // <script>\n/* x */ call(a);\n",
  json: '{"a": [1, 2.5e3, true, null], "b": "x\\"y"}',
  bash: "for f in *.md; do echo \"$f\" # all\ndone\n",
  sql: "SELECT a FROM t -- rows\nWHERE x = 'it''s' AND y > 0x1f",
  yaml: "name: value # c\nlist:\n  - 1\n",
  html: '<!-- c --><a href="x" onclick=\'y\'>t & u</a>',
  diff: "@@ -1 +1 @@\n-old <b>\n+new\n same\n",
};

describe("colours", () => {
  test.each(Object.entries(CODE))("of %s change no letter", (language, code) => {
    expect(plain(highlight(code, language))).toBe(code);
  });

  test("put no tag of the code into the page", () => {
    for (const [language, code] of Object.entries(CODE)) {
      expect(highlight(`${code}<img src=x onerror=alert(1)>"'\``, language)).not.toMatch(/<(?!\/?span)/);
    }
  });

  test("find words, strings, comments and what is called", () => {
    expect(highlight("return f(1) # no", "py")).toBe('<span class="hl-word">return</span> <span class="hl-name">f</span>(<span class="hl-number">1</span>) <span class="hl-comment"># no</span>');
  });

  test("leave a language alone that they do not know", () => {
    expect(highlight("a b c", "brainfuck")).toBe("");
    expect(highlight("a b c", "")).toBe("");
  });
});
