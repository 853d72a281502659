/** What the page's visitor may make of the box, and the steps of a first visit. The owner of the workspace supplies both. */
export interface BoxChoice {
  readonly choices: readonly { readonly name: string; readonly summary: string }[];
  /** What the box is now. */
  chosen(): string;
  /** Settles when the box is so; rejects with a sentence when it could not be made. One at a time. */
  choose(name: string): Promise<void>;
}

/** One step of the guide; done when a message in the channel matches, so that a reload forgets nothing. */
export interface GuideStep {
  readonly text: string;
  /** Source of a regular expression, tried on the text of every message. */
  readonly doneWhen: string;
}
