import { Component, type ReactNode } from "react";
import { Button } from "./basics";

/** A part of the page that failed says so, and the rest stays. */
export class Boundary extends Component<{ children: ReactNode }, { failed: string | null }> {
  override state = { failed: null as string | null };

  static getDerivedStateFromError(error: unknown): { failed: string } {
    return { failed: error instanceof Error ? error.message : String(error) };
  }

  override render(): ReactNode {
    if (this.state.failed === null) return this.props.children;
    return (
      <main className="page">
        <div className="note note-bad" role="alert">
          <strong>This part of the page failed</strong>
          <p>{this.state.failed}</p>
          <p className="muted">The runs are not touched by it. A newer version of the page may be there: load it again.</p>
          <Button small onClick={() => location.reload()}>Load again</Button>
        </div>
      </main>
    );
  }
}
