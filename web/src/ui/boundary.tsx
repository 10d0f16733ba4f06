import { Component, type ReactNode } from "react";
import { Button } from "./basics";

/** Contains an error in one part of the page. */
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
          <p className="muted">Your runs aren't affected. Reload to get the current version of the page.</p>
          <Button small onClick={() => location.reload()}>Reload</Button>
        </div>
      </main>
    );
  }
}
