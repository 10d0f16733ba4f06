import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

/** The server that the page talks to while it is developed. */
const server = process.env.RALPH_SERVER ?? "http://127.0.0.1:8000";

export default defineConfig({
  plugins: [react()],
  resolve: {
    // The page is written for React and runs on Preact: a quarter of the code, and it is there sooner on a slow machine.
    alias: [
      { find: /^react\/jsx(-dev)?-runtime$/, replacement: "preact/jsx-runtime" },
      { find: /^react-dom\/client$/, replacement: "preact/compat/client" },
      { find: /^react(-dom)?$/, replacement: "preact/compat" },
    ],
  },
  build: {
    // Committed and built into the binary, so that building ralph needs no npm.
    outDir: "../crates/server/page",
    emptyOutDir: true,
    target: "es2022",
    // Fonts and pictures are few; nothing goes into the code as text, so that the content policy can stay strict.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 600,
  },
  server: { proxy: { "/api": { target: server, ws: true } } },
  // What is tested imports React by packages, too, which only a bundler can turn.
  test: { include: ["src/**/*.test.ts"], server: { deps: { inline: [/@tanstack/] } } },
});
