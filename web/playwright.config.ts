import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: "e2e",
  // Each test starts its own server and runs; a small machine has no room for many at once.
  workers: 1,
  timeout: 120_000,
  expect: { timeout: 20_000 },
  reporter: [["list"]],
  use: {
    browserName: "chromium",
    // A step that hangs fails under its own name, not with the time limit of the whole test.
    actionTimeout: 30_000,
    viewport: { width: 1440, height: 900 },
    screenshot: "only-on-failure",
    launchOptions: { executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] },
  },
});
