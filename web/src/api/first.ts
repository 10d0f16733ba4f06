// The answers to what `boot.js` asked before the page's own code was there.

declare global {
  interface Window {
    ralphFirst?: Record<string, Promise<Response> | undefined>;
  }
}

/** The answer that is on its way for this path, once: whoever asks again asks anew. */
export function takeFirst(path: string): Promise<Response> | undefined {
  const all = typeof window === "undefined" ? undefined : window.ralphFirst;
  const answer = all?.[path];
  if (all && answer) all[path] = undefined;
  return answer;
}

/** Nobody was logged in when it was asked: the answers are refusals, and whoever logs in now asks anew. */
export function forgetFirst(): void {
  if (typeof window !== "undefined") window.ralphFirst = {};
}
