/** Where a check says what is wrong: a JSON pointer and a sentence in Slack's wording. */
export type Report = (pointer: string, what: string) => void;
