/** Renders Markdown of a model, a note or a tool to HTML, and seals the finished part of a growing text.
 *
 * The law of sealing: the pieces together are the HTML of the whole text, wherever it was cut. A block is
 * sealed when a later block has begun on a complete line; a new link definition reopens everything, since it
 * may change what stands above it. */

import MarkdownIt, { type Token } from "markdown-it";

export interface Marks {
  /** Numbers of sources: `[3]` and `[^3]` become citations if 3 is one of them. */
  cites?: ReadonlySet<number>;
}

type References = Record<string, { href: string; title: string }>;

interface Env extends Marks {
  [name: string | symbol]: unknown;
  references?: References;
}

type Highlight = (code: string, language: string) => string;
let highlighter: Highlight | null = null;

export function setHighlighter(highlight: Highlight): void {
  highlighter = highlight;
}

const SAFE_LINK = /^(https?:\/\/|#\/)/i;

function parser() {
  const md = new MarkdownIt({
    html: false,
    linkify: true,
    highlight: (code, language) => highlighter?.(code, language) ?? "",
  });
  md.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });
  // Only web addresses and our own routes become links; other schemes stay text.
  md.validateLink = (url) => SAFE_LINK.test(url.trim());
  // Remote images are not loaded: an address could leak what the model read.
  md.renderer.rules.image = (tokens, place) => {
    const token = tokens[place];
    return `<span class="image">image: ${md.utils.escapeHtml(token?.content || "unnamed")}</span>`;
  };
  md.renderer.rules.link_open = (tokens, place, options, _env, self) => {
    const token = tokens[place];
    if (token && !String(token.attrGet("href")).startsWith("#")) {
      token.attrSet("rel", "noopener noreferrer");
      token.attrSet("target", "_blank");
    }
    return self.renderToken(tokens, place, options);
  };
  // Column alignment uses a class, because the content policy refuses styles.
  for (const cell of ["th_open", "td_open"] as const) {
    md.renderer.rules[cell] = (tokens, place, options, _env, self) => {
      const token = tokens[place];
      const align = /text-align:(\w+)/.exec(String(token?.attrGet("style")))?.[1];
      if (token) token.attrs = align ? [["class", align]] : null;
      return self.renderToken(tokens, place, options);
    };
  }
  md.renderer.rules.table_open = () => '<div class="table" tabindex="0"><table>\n';
  md.renderer.rules.table_close = () => "</table></div>\n";
  // Scrollable areas must be reachable by keyboard.
  for (const block of ["fence", "code_block"] as const) {
    const draw = md.renderer.rules[block];
    md.renderer.rules[block] = (...given) => (draw?.(...given) ?? "").replace(/^<pre/, '<pre tabindex="0"');
  }
  md.inline.ruler.before("link", "cite", (state, silent) => {
    if (state.src.charCodeAt(state.pos) !== 0x5b) return false;
    const cites = (state.env as Env).cites;
    if (!cites?.size) return false;
    const found = /^\[\^?(\d{1,3})\](?![(:[])/.exec(state.src.slice(state.pos, state.pos + 7));
    const number = Number(found?.[1]);
    if (!found || !cites.has(number)) return false;
    if (!silent) state.push("cite", "", 0).content = String(number);
    state.pos += found[0].length;
    return true;
  });
  md.renderer.rules.cite = (tokens, place) => {
    const number = tokens[place]?.content ?? "";
    return `<a class="cite" href="#" data-cite="${number}">[${number}]</a>`;
  };
  return md;
}

const md = parser();

/** Renders the whole text at once. */
export function render(text: string, marks: Marks = {}): string {
  return md.render(text, { ...marks });
}

/** The lines that begin a top-level block. */
function starts(tokens: readonly Token[]): number[] {
  const lines: number[] = [];
  for (const token of tokens) {
    if (token.level === 0 && token.map && token.nesting >= 0) lines.push(token.map[0]);
  }
  return lines;
}

export interface Block {
  key: number;
  html: string;
}

/** A growing text: `blocks` are final and rendered once, `tail` is still open. */
export class SealedText {
  blocks: readonly Block[] = [];
  tail = "";
  #marks: Marks;
  #sealed = 0;
  #text = "";
  #references: References = {};
  #next = 0;

  constructor(marks: Marks = {}) {
    this.#marks = marks;
  }

  /** Updates the text; if it only grew, just the open tail is parsed again. */
  update(text: string): void {
    if (!text.startsWith(this.#text.slice(0, this.#sealed))) this.#reset();
    this.#text = text;
    this.#seal();
  }

  #reset(): void {
    this.#sealed = 0;
    this.blocks = [];
    this.#references = {};
  }

  #seal(): void {
    const open = this.#text.slice(this.#sealed);
    const env: Env = { ...this.#marks, references: { ...this.#references } };
    const tokens = md.parse(open, env);
    const known = Object.keys(this.#references).length;
    if (Object.keys(env.references ?? {}).length > known && this.#sealed > 0) {
      // A new definition may be referenced above.
      this.#sealed = 0;
      this.blocks = [];
      this.#references = env.references ?? {};
      this.#seal();
      return;
    }
    const lines = lineStarts(open);
    const begun = starts(tokens);
    const last = begun.at(-1);
    // The line on which the last block begins must be complete: `2` may yet become `2. item`.
    const settled = last !== undefined && begun.length > 1 && lines[last + 1] !== undefined ? last : undefined;
    if (settled === undefined) {
      this.tail = md.renderer.render(tokens, md.options, env);
      return;
    }
    const cut = lines[settled] ?? 0;
    const place = tokens.findIndex((token: Token) => token.level === 0 && token.map?.[0] === settled && token.nesting >= 0);
    const done = tokens.slice(0, place);
    this.blocks = [...this.blocks, { key: this.#next++, html: md.renderer.render(done, md.options, env) }];
    this.#references = env.references ?? {};
    this.#sealed += cut;
    this.tail = md.renderer.render(tokens.slice(place), md.options, env);
  }

  /** The whole HTML as one text: what the law of sealing compares. */
  get html(): string {
    return this.blocks.map((block) => block.html).join("") + this.tail;
  }
}

/** Where lines begin, as the parser counts them; a final carriage return is still open. */
function lineStarts(text: string): number[] {
  const places = [0];
  const breaks = /\r\n|\n|\r(?=.)/gs;
  for (let hit = breaks.exec(text); hit; hit = breaks.exec(text)) places.push(hit.index + hit[0].length);
  return places;
}
