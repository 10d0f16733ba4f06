#!/usr/bin/env node
// Finds the program in the package of this machine and hands everything over to it: arguments, terminal, signals, exit code.
"use strict";

const { spawn } = require("node:child_process");
const os = require("node:os");

const NAME = "ralph-loop-cli";

/** The packages that can hold the program, the best first. */
function candidates() {
  const base = `${NAME}-${process.platform}-${process.arch}`;
  if (process.platform !== "linux") return [base];
  const report = process.report && process.report.getReport();
  const glibc = Boolean(report && report.header && report.header.glibcVersionRuntime);
  return glibc ? [base, `${base}-musl`] : [`${base}-musl`];
}

function find() {
  for (const name of candidates()) {
    try {
      return require.resolve(`${name}/bin/ralph`);
    } catch {
      // The next one.
    }
  }
  return undefined;
}

const program = find();
if (!program) {
  console.error(`error: there is no ralph for ${process.platform} ${process.arch}`);
  console.error(`  None of the packages ${candidates().join(", ")} is installed.`);
  console.error("next: install without --omit=optional; on other systems build it from its source");
  process.exit(4);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// What is meant for ralph goes to ralph, which decides what becomes of a run. A Ctrl-C reaches it by itself.
for (const signal of ["SIGTERM", "SIGHUP", "SIGQUIT"]) process.on(signal, () => child.kill(signal));
process.on("SIGINT", () => {});
child.on("error", (error) => {
  console.error(`error: ${program} does not start\n  ${error.message}\nnext: install the package anew`);
  process.exit(4);
});
child.on("exit", (code, signal) => process.exit(signal ? 128 + (os.constants.signals[signal] || 0) : code));
