// Owns the build step that puts the workflow bundle beside the compiled rooms.

import { writeFile } from 'node:fs/promises';
import { bundleWorkflows, PREBUILT_BUNDLE } from '../worker/bundle.js';

const { code } = await bundleWorkflows();
await writeFile(PREBUILT_BUNDLE, code);
console.log(`workflow bundle: ${Math.round(code.length / 1024)} kB`);
