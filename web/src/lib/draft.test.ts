import { describe, expect, it } from "vitest";
import { differing, discarded, edited, isChanged, keepMine, opened, reread, saved, takeTheirs } from "./draft";

const file = (text: string) => ({ text, etag: `etag of ${text}` });

describe("a draft", () => {
  it("is unchanged when it is opened and after typing was taken back", () => {
    const draft = opened(file("a"));
    expect(isChanged(draft)).toBe(false);
    expect(isChanged(edited(draft, "b"))).toBe(true);
    expect(isChanged(edited(edited(draft, "b"), "a"))).toBe(false);
  });

  it("keeps what was typed while it was being written", () => {
    const draft = saved(edited(opened(file("a")), "b and more"), file("b"));
    expect(draft.text).toBe("b and more");
    expect(isChanged(draft)).toBe(true);
  });

  it("follows a file that changed if nothing was typed", () => {
    expect(reread(opened(file("a")), file("c"))).toEqual(opened(file("c")));
  });

  it("asks if both changed, and loses neither", () => {
    const draft = reread(edited(opened(file("a")), "mine"), file("theirs"));
    expect(draft).toEqual({ text: "mine", base: file("a"), theirs: file("theirs") });
    expect(keepMine(draft)).toEqual({ text: "mine", base: file("theirs"), theirs: null });
    expect(takeTheirs(draft)).toEqual(opened(file("theirs")));
    expect(discarded(draft)).toEqual(opened(file("theirs")));
  });

  it("does not ask if both wrote the same", () => {
    const draft = reread(edited(opened(file("a")), "same"), file("same"));
    expect(draft.theirs).toBeNull();
    expect(isChanged(draft)).toBe(false);
  });

  it("is still mine after the file came back to what it was", () => {
    const conflict = reread(edited(opened(file("a")), "mine"), file("theirs"));
    expect(reread(conflict, file("a")).theirs).toBeNull();
  });
});

describe("two texts", () => {
  it("differ where their lines do", () => {
    expect(differing("a\nb\nc", "a\nx\ny\nc")).toEqual({ head: 1, tail: 1, mine: ["b"], theirs: ["x", "y"] });
    expect(differing("a\na", "a\na\na")).toEqual({ head: 2, tail: 0, mine: [], theirs: ["a"] });
    expect(differing("a", "a")).toEqual({ head: 1, tail: 0, mine: [], theirs: [] });
  });
});
