// Answers to the requests that `boot.js` sends before the page's code has loaded.

declare global {
  interface Window {
    ralphFirst?: Record<string, Promise<Response> | undefined>;
  }
}

/** The request already under way for this path, once: a second call sends a new request. */
export function takeFirst(path: string): Promise<Response> | undefined {
  const all = typeof window === "undefined" ? undefined : window.ralphFirst;
  const answer = all?.[path];
  if (all && answer) all[path] = undefined;
  return answer;
}

/** Drops the early requests, which were refused before the login. */
export function forgetFirst(): void {
  if (typeof window !== "undefined") window.ralphFirst = {};
}
