import { vitePreprocess } from '@sveltejs/vite-plugin-svelte';

export default {
  preprocess: vitePreprocess(),
  // Everything is written with runes.
  compilerOptions: { runes: true },
};
