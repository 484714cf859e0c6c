import { svelte } from "@sveltejs/vite-plugin-svelte";
import { gzipSync } from "node:zlib";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const output = fileURLToPath(new URL("../src/lamina/apps/web/static", import.meta.url));

const thin = (name: string): string => fileURLToPath(new URL(`./src/thin/${name}.ts`, import.meta.url));

/** The server sends the file beside a file if it is there: nothing is compressed while one waits. */
function compressed(): Plugin {
  return {
    name: "compressed",
    apply: "build",
    closeBundle() {
      for (const file of readdirSync(output, { recursive: true, withFileTypes: true })) {
        if (!file.isFile() || !/\.(js|css|html|svg)$/.test(file.name)) continue;
        const path = join(file.parentPath, file.name);
        writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
      }
    },
  };
}

export default defineConfig(({ mode }) => ({
  base: "./",
  plugins: [svelte(), compressed()],
  resolve: {
    // See src/thin/README.md.
    alias: { entities: thin("entities"), "linkify-it": thin("linkify"), "uc.micro": thin("characters"), "punycode.js": thin("punycode") },
    // Tests mount components in a document: the browser's half of Svelte, not the server's.
    ...(mode === "test" ? { conditions: ["browser"] } : {}),
  },
  build: {
    outDir: output,
    emptyOutDir: true,
    target: "es2023",
    // Inlined files would be `data:` addresses, which the content policy refuses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
    rolldownOptions: {
      output: {
        // Screens that are used together come together: less in all than each by itself.
        codeSplitting: {
          groups: [
            { name: "base", test: /node_modules.(svelte|esm-env|clsx)|src.ui.(?!Markdown)|src.lib.(?!markdown|highlight|session|preview|live|message|mention|arguments|usage)|src.shell/, priority: 1 },
            { name: "markdown", test: /markdown-it|mdurl|dompurify|src.(thin|lib.markdown|lib.highlight|ui.Markdown)/ },
            { name: "deeper", test: /src.screens.(context|layers|timeline|difference|tree|doctor|spending)|d3-hierarchy|uplot/ },
            { name: "house", test: /src.screens.(agents|notes|settings|models|start)/ },
          ],
        },
      },
    },
  },
  server: { proxy: { "/api": "http://127.0.0.1:8765" } },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.ts"],
    // Aliases hold in packages only if these are bundled as well.
    server: { deps: { inline: ["markdown-it"] } },
  },
}));
