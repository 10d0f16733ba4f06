// Colors of a terminal (SGR), as pieces of text with the classes that draw them.

import { colored } from "./clean";

export interface Piece {
  text: string;
  /** Names of classes, empty for plain text. */
  style: string;
}

const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

interface Pen {
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  color: string | null;
}

const PLAIN: Pen = { bold: false, dim: false, italic: false, underline: false, color: null };

function style(pen: Pen): string {
  const words = [];
  if (pen.bold) words.push("ansi-bold");
  if (pen.dim) words.push("ansi-dim");
  if (pen.italic) words.push("ansi-italic");
  if (pen.underline) words.push("ansi-underline");
  if (pen.color) words.push(`ansi-${pen.color}`);
  return words.join(" ");
}

/** A color of 256 as the nearest of the eight; backgrounds are the page's own and are not painted. */
function nearest(code: number): string | null {
  if (code < 16) return NAMES[code % 8] ?? null;
  if (code >= 232) return code < 244 ? "black" : "white";
  const cube = code - 16;
  const [r, g, b] = [Math.floor(cube / 36) > 2, Math.floor(cube / 6) % 6 > 2, cube % 6 > 2];
  return NAMES[(r ? 1 : 0) + (g ? 2 : 0) + (b ? 4 : 0)] ?? null;
}

function applied(pen: Pen, codes: number[]): Pen {
  let next = { ...pen };
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at] ?? 0;
    if (code === 0) next = { ...PLAIN };
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.underline = true;
    else if (code === 22) next.bold = next.dim = false;
    else if (code === 23) next.italic = false;
    else if (code === 24) next.underline = false;
    else if (code >= 30 && code <= 37) next.color = NAMES[code - 30] ?? null;
    else if (code >= 90 && code <= 97) next.color = NAMES[code - 90] ?? null;
    else if (code === 39) next.color = null;
    else if (code === 38 || code === 48) {
      const mode = codes[at + 1];
      if (mode === 5) {
        if (code === 38) next.color = nearest(codes[at + 2] ?? 7);
        at += 2;
      } else if (mode === 2) {
        if (code === 38) {
          const [r = 0, g = 0, b = 0] = codes.slice(at + 2, at + 5);
          next.color = NAMES[(r > 127 ? 1 : 0) + (g > 127 ? 2 : 0) + (b > 127 ? 4 : 0)] ?? null;
        }
        at += 4;
      }
    }
  }
  return next;
}

/** One text in pieces of one color each. */
export function pieces(text: string): Piece[] {
  const out: Piece[] = [];
  let pen = PLAIN;
  // eslint-disable-next-line no-control-regex
  const parts = colored(text).split(/\u001b\[([0-9;]*)m/);
  parts.forEach((part, at) => {
    if (at % 2 === 1) pen = applied(pen, part.split(";").map(Number));
    else if (part !== "") out.push({ text: part, style: style(pen) });
  });
  return out;
}
