/** Settings in this browser's storage; without storage, nothing is kept. */
export const remembered = {
  get(key: string): string | null {
    try {
      return localStorage.getItem(`ralph.${key}`);
    } catch {
      return null;
    }
  },
  set(key: string, value: string | null): void {
    try {
      if (value === null) localStorage.removeItem(`ralph.${key}`);
      else localStorage.setItem(`ralph.${key}`, value);
    } catch {
      // Storage may be full or forbidden.
    }
  },
};
