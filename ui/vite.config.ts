import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig, type Plugin } from 'vite';

/** Replaces each file by a compressed one, where that saves anything. The hub decompresses it for a client that does not accept gzip. */
function gzipped(): Plugin {
  let folder = '';
  return {
    name: 'gzipped',
    apply: 'build',
    configResolved(config) {
      folder = config.build.outDir;
    },
    closeBundle() {
      for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile() || entry.name.endsWith('.gz')) continue;
        const path = join(entry.parentPath, entry.name);
        const content = readFileSync(path);
        const small = gzipSync(content, { level: 9 });
        if (small.length >= content.length) continue;
        writeFileSync(`${path}.gz`, small);
        rmSync(path);
      }
    },
  };
}

export default defineConfig({
  plugins: [svelte(), gzipped()],
  build: {
    target: 'es2023',
    // The page may load nothing but files of its own: no inlined assets.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  worker: {
    // One file, which every browser can start as a service worker.
    format: 'iife',
    // A service worker has one address: under another it would be another worker.
    rolldownOptions: { output: { entryFileNames: 'worker.js' } },
  },
  server: {
    // `npm run dev` beside a hub: PLEXUS_HUB=http://127.0.0.1:4445. The hub takes requests of its own pages only.
    proxy: Object.fromEntries(
      ['/rpc', '/events', '/console', '/identity'].map((path) => [
        path,
        {
          target: process.env['PLEXUS_HUB'] ?? 'http://127.0.0.1:4445',
          changeOrigin: true,
          headers: { origin: process.env['PLEXUS_HUB'] ?? 'http://127.0.0.1:4445' },
        },
      ]),
    ),
  },
});
