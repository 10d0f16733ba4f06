const BOUNDARY = /[\s/_.:'’-]/;

/** How well one word is in a text: at its start, at the start of a word, inside of one; 0 if it isn't. */
function wordScore(word: string, text: string): number {
  let inside = 0;
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    if (at === 0) return 800;
    if (BOUNDARY.test(text[at - 1] ?? "")) return 600;
    inside = 300;
  }
  return inside;
}

/** How well `text` has the words of `query`: the worst of them counts. */
export function wordsScore(query: string, text: string): number {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return words.length === 0 ? 1 : Math.min(...words.map((word) => wordScore(word, text.toLowerCase())));
}

/** How well a name answers a query: the whole name, its words, its initials, then its letters in order. 0 is not at all. */
export function score(query: string, name: string): number {
  const [wanted, text] = [query.toLowerCase().trim(), name.toLowerCase()];
  if (wanted === text) return 1000;
  const words = wordsScore(wanted, text);
  if (words > 0) return words - Math.min(50, text.length / 10);
  const letters = wanted.replace(/\s+/g, "");
  const initials = text.split(BOUNDARY).map((word) => word[0] ?? "").join("");
  if (initials.startsWith(letters)) return 400;
  let at = 0;
  for (const letter of text) if (letter === letters[at]) at++;
  return at === letters.length ? 100 - Math.min(50, text.length / 10) : 0;
}
