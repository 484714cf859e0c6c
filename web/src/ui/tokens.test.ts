import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const css = readFileSync(join(process.cwd(), "src/ui/tokens.css"), "utf8");
const pairs = Object.fromEntries(
  [...css.matchAll(/--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)/g)].map(([, name, light, dark]) => [name, { light, dark }]),
) as Record<string, { light: string; dark: string }>;

function luminance(hex: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const value = parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: string, b: string): number {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

function mix(ink: string, paper: string, share: number): string {
  return "#" + [1, 3, 5].map((at) => Math.round(parseInt(ink.slice(at, at + 2), 16) * share + parseInt(paper.slice(at, at + 2), 16) * (1 - share)).toString(16).padStart(2, "0")).join("");
}

const TEXTS = ["text", "text-2", "text-3", "accent", "good", "warn", "bad", "layer-tools", "layer-l1", "layer-l2", "layer-l3", "layer-l4", "layer-l5"];
const PAPERS = ["ground", "surface", "raised", "hover", "selected"];

describe.each(["light", "dark"] as const)("colours, %s", (theme) => {
  const colour = (name: string): string => pairs[name]![theme];

  test.each(TEXTS)("%s can be read on every surface", (ink) => {
    for (const paper of PAPERS) expect(contrast(colour(ink), colour(paper)), `${ink} on ${paper}`).toBeGreaterThanOrEqual(4.5);
  });

  test.each(TEXTS.slice(1))("a badge of %s can be read", (ink) => {
    expect(contrast(colour(ink), mix(colour(ink), colour("surface"), 0.09))).toBeGreaterThanOrEqual(4.5);
  });

  test("what is written on the accent can be read, and a control's edge can be seen", () => {
    expect(contrast(colour("on-accent"), colour("accent"))).toBeGreaterThanOrEqual(4.5);
    expect(contrast(colour("on-accent"), colour("accent-hover"))).toBeGreaterThanOrEqual(4.5);
    for (const paper of ["ground", "surface", "raised"]) expect(contrast(colour("line-control"), colour(paper))).toBeGreaterThanOrEqual(3);
  });
});
