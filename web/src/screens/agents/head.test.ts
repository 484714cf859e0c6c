import { describe, expect, it } from "vitest";
import { fileOf, globList, newGuide, readField, scalar, withField } from "./head";

const guide = `---
name: security
include: agent   # found by search
globs:
  - "*.sql"
  - migrations/**
priority: 3
---
Always back up.
---
not a head
`;

describe("the head of a guide", () => {
  it("is read field by field", () => {
    expect(readField(guide, "include")).toBe("agent");
    expect(readField(guide, "globs")).toBe("*.sql, migrations/**");
    expect(readField(guide, "priority")).toBe("3");
    expect(readField(guide, "description")).toBe("");
    expect(readField("no head", "name")).toBe("");
  });

  it("changes in one field only", () => {
    const changed = withField(guide, "include", "always");
    expect(changed).toBe(guide.replace("include: agent   # found by search", "include: always"));
  });

  it("takes a list away with all of its lines", () => {
    expect(withField(guide, "globs", "")).toBe(guide.replace('globs:\n  - "*.sql"\n  - migrations/**\n', ""));
    expect(readField(withField(guide, "globs", globList("*.py, docs/**")), "globs")).toBe("*.py, docs/**");
  });

  it("begins where there was none, and goes when it is empty", () => {
    expect(withField("Text", "include", "always")).toBe("---\ninclude: always\n---\nText");
    expect(withField("---\ninclude: always\n---\nText", "include", "")).toBe("Text");
    expect(withField("Text", "include", "")).toBe("Text");
  });
});

describe("a new guide", () => {
  it("has a file named after it", () => {
    expect(fileOf("rule", "Error handling!")).toBe("rules/error-handling.md");
    expect(fileOf("reference", "  ")).toBe("references/new.md");
  });

  it("quotes what YAML would read as something else", () => {
    expect(scalar("plain words")).toBe("plain words");
    expect(scalar("true")).toBe('"true"');
    expect(scalar("a: b")).toBe('"a: b"');
    expect(newGuide("007", "Who: me", "agent")).toBe('---\nname: "007"\ndescription: "Who: me"\ninclude: agent\n---\n\n');
  });
});
