/** Web addresses in running text: `http://` and `https://`, up to the end of the address. */

interface Found {
  schema: string;
  index: number;
  lastIndex: number;
  raw: string;
  text: string;
  url: string;
}

const ADDRESS = /https?:\/\/[^\s<>"'`\u0000-\u001f]+/i;

/** Punctuation at the end belongs to the sentence, and so does a bracket not opened within the address. */
function trim(address: string): string {
  let text = address;
  for (;;) {
    const last = text.at(-1) ?? "";
    const closes = { ")": "(", "]": "[", "}": "{" }[last];
    const odd = closes !== undefined && text.split(last).length > text.split(closes).length;
    if (!odd && !".,;:!?*_~|…".includes(last)) return text;
    text = text.slice(0, -1);
  }
}

function found(text: string, from: number): Found | null {
  const hit = ADDRESS.exec(text.slice(from));
  if (!hit) return null;
  const raw = trim(hit[0]);
  if (!/^https?:\/\/[\p{L}\p{N}[]/iu.test(raw)) return null;
  const index = from + hit.index;
  return { schema: raw.slice(0, raw.indexOf("//")), index, lastIndex: index + raw.length, raw, text: raw, url: raw };
}

export class LinkifyIt {
  set(): this {
    return this;
  }

  test(text: string): boolean {
    return ADDRESS.test(text);
  }

  match(text: string): Found[] | null {
    const all: Found[] = [];
    let at = 0;
    while (at < text.length) {
      const one = found(text, at);
      if (!one) break;
      all.push(one);
      at = one.lastIndex;
    }
    return all.length ? all : null;
  }

  matchAtStart(text: string): Found | null {
    const one = found(text, 0);
    return one?.index === 0 ? one : null;
  }
}
