import tseslint from 'typescript-eslint';

/** Type-aware lint: an async program lives or dies by its promises, so floating and misused ones are errors. */
export default tseslint.config(
  { ignores: ['dist', 'node_modules', 'coverage', '.reclaim', 'bench/results'] },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      'no-restricted-syntax': [
        'error',
        { selector: 'ExportDefaultDeclaration', message: 'Name what you export.' },
        {
          selector: 'TSAsExpression > TSAsExpression',
          message: 'A double cast hides a wrong type: parse with zod instead.',
        },
      ],
    },
  },
  {
    // Tests may assert on shapes they have just built, and the config files have to export a default.
    files: ['test/**/*.ts', '*.config.ts'],
    rules: { '@typescript-eslint/no-non-null-assertion': 'off', 'no-restricted-syntax': 'off' },
  },
);
