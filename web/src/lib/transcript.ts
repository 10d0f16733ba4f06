// Agents' recorded output as the entries of a transcript: what the agent says, its tool calls and their results.

export type Entry =
  | { kind: "say"; text: string }
  | { kind: "tool"; name: string; text: string }
  | { kind: "result"; ok: boolean; text: string };

type Json = Record<string, unknown>;

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);
const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** The argument of a tool call that says most. */
const ARGUMENTS = ["file_path", "path", "command", "pattern", "url", "query", "description", "prompt"];

function argumentOf(input: unknown): string {
  if (!isObject(input)) return text(input);
  const named = ARGUMENTS.map((name) => text(input[name])).find(Boolean);
  return named ?? text(Object.values(input).find((value) => typeof value === "string"));
}

/** The text of a result: a string, or a list of text blocks. */
function contentOf(content: unknown): string {
  if (typeof content === "string") return content;
  return Array.isArray(content) ? content.map((part) => (isObject(part) ? text(part.text) : "")).filter(Boolean).join("\n") : "";
}

/** A block of a message, as Claude and programs with its format write them. */
function blockEntries(block: unknown): Entry[] {
  if (!isObject(block)) return [];
  if (block.type === "text") return [{ kind: "say", text: text(block.text) }];
  if (block.type === "tool_use") return [{ kind: "tool", name: text(block.name) || "tool", text: argumentOf(block.input) }];
  if (block.type === "tool_result") return [{ kind: "result", ok: block.is_error !== true, text: contentOf(block.content) }];
  return [];
}

/** An item of Codex. */
function itemEntries(item: Json): Entry[] {
  if (item.type === "agent_message") return [{ kind: "say", text: text(item.text) }];
  if (item.type === "error") return [{ kind: "result", ok: false, text: text(item.message) }];
  if (item.type === "command_execution") {
    return [{ kind: "tool", name: "shell", text: text(item.command) }, { kind: "result", ok: !item.exit_code, text: text(item.aggregated_output) }];
  }
  if (item.type !== "file_change" || !Array.isArray(item.changes)) return [];
  return item.changes.filter(isObject).map((change) => ({ kind: "tool", name: text(change.kind) || "edit", text: text(change.path) }));
}

/** The entries of one line of JSON; null for a line of another format, which stays as it is. */
export function entriesOf(line: string): Entry[] | null {
  if (!line.startsWith("{")) return null;
  let event: unknown;
  try {
    event = JSON.parse(line);
  } catch {
    return null;
  }
  if (!isObject(event) || typeof event.type !== "string") return null;
  if (isObject(event.message)) {
    const { content } = event.message;
    return typeof content === "string" ? [{ kind: "say", text: content }] : Array.isArray(content) ? content.flatMap(blockEntries) : [];
  }
  if (isObject(event.item)) return event.type === "item.completed" ? itemEntries(event.item) : [];
  // The last line of a session repeats its answer; only an error is news.
  if (event.type === "result") return event.is_error === true ? [{ kind: "result", ok: false, text: text(event.result) }] : [];
  return /^(system|thread\.|turn\.|stream_event$)/.test(event.type) ? [] : null;
}
