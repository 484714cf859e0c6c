import { describe, expect, it } from "vitest";
import { bodyOf, plainOf, excerpt, folderOf, foldersOf, linked, marked, nameOf } from "./note_text";

const to = (path: string, anchor: string) => `#/${path}${anchor && `@${anchor}`}`;
const links = [
  { link: "tides", path: "harbour/tides.md", anchor: "" },
  { link: "tides#Noon", path: "harbour/tides.md", anchor: "Noon" },
  { link: "nowhere", path: "", anchor: "" },
  { link: "my plan.md", path: "my plan.md", anchor: "" },
];

describe("links of a note", () => {
  it("lead to the note that the server found", () => {
    expect(linked("See [[tides]] and [[tides#Noon|noon]].", links, to)).toBe(
      "See [tides](#/harbour/tides.md) and [noon](#/harbour/tides.md@Noon).",
    );
    expect(linked("[the plan](my%20plan.md)", links, to)).toBe("[the plan](#/my plan.md)");
    expect(linked("![[tides]]", links, to)).toBe("[▸ tides](#/harbour/tides.md)");
  });

  it("are crossed out if they lead nowhere", () => {
    expect(linked("[[nowhere|lost]] [[never seen]]", links, to)).toBe("~~lost~~ ~~never seen~~");
  });

  it("are left alone in code and on the web", () => {
    const text = "`[[tides]]`\n```\n[[tides]]\n```\n[x](https://example.org) ![p](pic.png)";
    expect(linked(text, links, to)).toBe(text);
  });
});

it("a head is not part of the text", () => {
  expect(bodyOf("---\ntags: [a]\n---\n# T\n")).toEqual({ body: "# T\n", skipped: 3 });
  expect(bodyOf("# T\n---\nx\n---\n")).toEqual({ body: "# T\n---\nx\n---\n", skipped: 0 });
});

describe("a passage", () => {
  it("has the words of the search marked, and their forms", () => {
    expect(marked("A snapshot", "snapshots").at(-1)).toEqual({ text: "snapshot", hit: true });
    expect(marked("Rotate keys: the monkey key.", "key rotate").filter((piece) => piece.hit).map((piece) => piece.text)).toEqual([
      "Rotate",
      "keys",
      "key",
    ]);
  });

  it("is whole without a search, and never loses a letter", () => {
    expect(marked("a.b (c)", "")).toEqual([{ text: "a.b (c)", hit: false }]);
    expect(marked("a+b ab", "ab.*(").map((piece) => piece.text).join("")).toBe("a+b ab");
  });

  it("is cut around its first hit", () => {
    const text = `${"word ".repeat(200)}needle ${"more ".repeat(50)}`;
    expect(excerpt(text, "needle", 100)).toContain("needle");
    expect(excerpt("short\ntext", "")).toBe("short text");
  });
});

it("a passage in a list has no marks", () => {
  expect(plainOf("## Use\n\nSee [the docs](https://a.org) and [[tides|noon]]:\n\n```bash\nzfs list\n```\n- **bold** `code` 2 * 3")).toBe(
    "Use See the docs and noon: zfs list bold code 2 * 3",
  );
});

it("a path is a name in a folder", () => {
  expect([nameOf("a/b/c.md"), folderOf("a/b/c.md"), folderOf("c.md")]).toEqual(["c", "a/b", ""]);
  expect(foldersOf(["a/b/c.md", "d.md", "a/e.md"])).toEqual(["a", "a/b"]);
});
