import { describe, expect, test } from "vitest";
import { render, SealedText } from "./markdown";

/** A small generator of its own: the same seeds give the same texts on every machine. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1664525 + 1013904223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

const PIECES = [
  "A paragraph.\n\n", "Two lines\nof one.\n", "# Heading\n", "Setext\n===\n", "Setext 2\n---\n", "---\n", "- one\n- two\n",
  "- one\n\n- loose\n", "- deep\n  - deeper\n\n    more\n", "1. first\n2. second\n", "2", ". item\n", "* star\n", "> quoted\n> more\n",
  "> lazy\ngoes on\n", "```py\nx = 1\n", "```\n", "~~~\n", "    code by indent\n", "| a | b |\n|---|:-:|\n| 1 | 2 |\n", "| c |\n",
  "|---|\n", "[link][ref] and [other]\n\n", "[ref]: https://example.org 'title'\n", "[other]: https://example.com\n",
  "see https://example.org/a_(b).\n", "`code` **bold** _it_ ~~gone~~\n", "line  \nbreak\n", "[1] and [^2] and [9]\n", "<b>no html</b>\n",
  "\n", "\n\n", " ", "  ", "\t", "\\", "*", "_", "[", "](x)", "&mdash; &#65;\n", "![alt](https://evil.example/x.png)\n", "\r\n", "text",
];

describe("text that grows", () => {
  test("is the HTML of the whole, wherever it was cut", () => {
    const marks = { cites: new Set([1, 2]) };
    for (let seed = 1; seed <= 400; seed++) {
      const next = random(seed);
      const text = Array.from({ length: 2 + Math.floor(next() * 14) }, () => PIECES[Math.floor(next() * PIECES.length)]).join("");
      const sealed = new SealedText(marks);
      let at = 0;
      while (at < text.length) {
        at = Math.min(text.length, at + 1 + Math.floor(next() * 9));
        sealed.update(text.slice(0, at));
        expect(sealed.html, `seed ${seed} at ${at}: ${JSON.stringify(text.slice(0, at))}`).toBe(render(text.slice(0, at), marks));
      }
    }
  });

  test("is sealed block by block, and what is sealed is not made again", () => {
    const sealed = new SealedText();
    sealed.update("One.\n\nTwo.\n\nThr");
    const first = sealed.blocks;
    sealed.update("One.\n\nTwo.\n\nThree.\n\nFour.\n");
    expect(first.length).toBe(0);
    const before = sealed.blocks[0];
    sealed.update("One.\n\nTwo.\n\nThree.\n\nFour.\n\nFive.\n");
    expect(sealed.blocks[0]).toBe(before);
    expect(sealed.blocks.length).toBe(2);
  });

  test("that was replaced begins anew", () => {
    const sealed = new SealedText();
    sealed.update("One.\n\nTwo.\n\nThree.\n");
    sealed.update("Another.\n");
    expect(sealed.html).toBe(render("Another.\n"));
  });
});

describe("what is rendered", () => {
  test("has no HTML of the text, no images, no scripts as addresses", () => {
    const html = render('<img src=x onerror=alert(1)> ![a](https://evil.example/p.png) [x](javascript:alert(1)) [d](data:text/html,x)');
    expect(html).not.toMatch(/<img|href="(javascript|data)/);
    expect(html).toContain("image: a");
  });

  test("links only to the web and to our own routes", () => {
    expect(render("[a](https://example.org)")).toContain('rel="noopener noreferrer"');
    expect(render("[a](#/w/notes)")).toContain('href="#/w/notes"');
    expect(render("[a](file:///etc/passwd)")).not.toContain("href");
    expect(render("see https://example.org/a_(b).")).toContain('href="https://example.org/a_(b)"');
  });

  test("aligns columns by a class, never by a style", () => {
    const html = render("| a |\n|--:|\n| 1 |\n");
    expect(html).toContain('class="right"');
    expect(html).not.toContain("style");
  });

  test("cites only sources that are there", () => {
    const html = render("At noon [1], at dusk [^2], never [3].", { cites: new Set([1, 2]) });
    expect(html.match(/data-cite="\d"/g)).toEqual(['data-cite="1"', 'data-cite="2"']);
    expect(html).toContain("[3]");
  });
});
