#!/usr/bin/env node
// The sources run as they are: tsx strips the types as it loads them, so there is no build to be out of date.
import { register } from 'tsx/esm/api';

register();
await import('../src/cli/main.ts');
