/** Lint rules of the console. Formatting is left to Prettier, and types to svelte-check. */

import js from '@eslint/js';
import prettier from 'eslint-config-prettier';
import svelte from 'eslint-plugin-svelte';
import globals from 'globals';
import ts from 'typescript-eslint';
import svelteConfig from './svelte.config.js';

export default ts.config(
  { ignores: ['node_modules', 'dist', 'src/wire.ts'] },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  js.configs.recommended,
  ts.configs.recommendedTypeChecked,
  svelte.configs.recommended,
  prettier,
  svelte.configs.prettier,
  {
    languageOptions: {
      globals: { ...globals.browser, ...globals.node },
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname, extraFileExtensions: ['.svelte'] },
    },
  },
  {
    files: ['**/*.svelte', '**/*.svelte.ts'],
    languageOptions: { parserOptions: { parser: ts.parser, svelteConfig } },
  },
  {
    rules: {
      // `const { children, ...rest }` leaves a field out.
      '@typescript-eslint/no-unused-vars': ['error', { ignoreRestSiblings: true }],
      // Lists without identity (parts of a text, notes) are drawn again as a whole: a key would only repeat the index.
      'svelte/require-each-key': 'off',
      // `{' '}` keeps a space that the formatter may move to the end of a line.
      'svelte/no-useless-mustaches': 'off',
    },
  },
  {
    // ESLint sees components and snippets as `any`; svelte-check knows their types.
    files: ['**/*.svelte'],
    rules: {
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
    },
  },
  // A stand-in for an asynchronous function is asynchronous, whether it waits for something or not.
  { files: ['**/*.test.ts'], rules: { '@typescript-eslint/require-await': 'off' } },
  { files: ['**/*.js'], extends: [ts.configs.disableTypeChecked] },
);
