/** The commands of DESIGN 4.3. Each is loaded only when it runs, so that `reclaim diagnose FILE` starts no queue. */
import type { Command } from './io.ts';

interface Entry {
  readonly summary: string;
  load(): Promise<Command>;
}

export const commands: Readonly<Record<string, Entry>> = {
  diagnose: {
    summary: 'tell what holds the memory of a box, from a capture or live',
    load: async () => (await import('./diagnose.ts')).diagnoseCommand,
  },
  capture: {
    summary: 'write everything one look reads as one JSON file',
    load: async () => (await import('./capture.ts')).captureCommand,
  },
  run: {
    summary: 'look, show the plan, ask, act, measure',
    load: async () => (await import('./run.ts')).runCommand,
  },
  hosts: {
    summary: 'list the configured hosts',
    load: async () => (await import('./hosts.ts')).hostsCommand,
  },
  history: {
    summary: 'list what was asked and done',
    load: async () => (await import('./history.ts')).historyCommand,
  },
  trace: {
    summary: 'follow one request through all processes',
    load: async () => (await import('./trace.ts')).traceCommand,
  },
  export: {
    summary: 'write all requests and the audit log as JSON lines',
    load: async () => (await import('./export.ts')).exportCommand,
  },
  import: {
    summary: 'take a backup into an empty store',
    load: async () => (await import('./import.ts')).importCommand,
  },
  doctor: {
    summary: 'check configuration, queue, Slack and every host',
    load: async () => (await import('./doctor.ts')).doctorCommand,
  },
  trust: {
    summary: 'show the key of a host and add it to known_hosts after a yes',
    load: async () => (await import('./trust.ts')).trustCommand,
  },
  'host-install': {
    summary: 'print or place the root-owned helper for privilege: helper',
    load: async () => (await import('./host-install.ts')).hostInstallCommand,
  },
  receipt: {
    summary: 'verify the receipt of a run, or an exported audit log, offline',
    load: async () => (await import('./receipt.ts')).receiptCommand,
  },
  serve: {
    summary: 'run the bot',
    load: async () => (await import('./serve.ts')).serveCommand,
  },
  init: {
    summary: 'write the first .env and reclaim.yaml, with hosts from what you have',
    load: async () => (await import('./init.ts')).initCommand,
  },
  completion: {
    summary: 'print the script that lets TAB finish commands and hosts',
    load: async () => (await import('./completion.ts')).completionCommand,
  },
  demo: {
    summary: 'try everything on this machine, with no Slack and no box',
    load: async () => (await import('./demo.ts')).demoCommand,
  },
};
