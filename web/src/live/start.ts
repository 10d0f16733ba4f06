// Requests before the first paint: the user and the first rows, so that the first paint is complete.

import { api } from "../api/calls";
import { setCsrf } from "../api/client";
import { forgetFirst } from "../api/first";
import type { Me, RunsPage } from "../api/types";

/** The list that a page without filters shows first. */
export const FIRST_LIST = { sort: "updated", order: "desc", limit: 100 } as const;

/** Milliseconds after which the page is drawn with what has arrived. */
const PATIENCE = 700;

let rows: RunsPage | null = null;

/** The first rows, once. */
export function takeRows(): RunsPage | null {
  const taken = rows;
  rows = null;
  return taken;
}

/** The user, if the answer comes in time. */
export async function asked(): Promise<Me | null> {
  // A code in the address logs in first.
  if (location.hash.startsWith("#code=")) return null;
  const wait = <T,>(answer: Promise<T>): Promise<T | null> =>
    Promise.race([answer.catch(() => null), new Promise<null>((done) => setTimeout(() => done(null), PATIENCE))]);
  const list = location.pathname === "/" && location.search === "" ? wait(api.runs(FIRST_LIST)) : null;
  const me = await wait(api.me());
  if (!me) {
    forgetFirst();
    return null;
  }
  setCsrf(me.csrf);
  rows = await list;
  return me;
}
