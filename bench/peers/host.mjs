// Supervises children with the Claude Agent SDK for TypeScript: allows every call in `canUseTool`, and ends when all turns have ended.
// Argument: {"claude": path, "cwd": path, "prompts": [text]}.
import { query } from '@anthropic-ai/claude-agent-sdk';

const { claude, cwd, prompts } = JSON.parse(process.argv[2]);

async function supervise(prompt) {
  let finish;
  const finished = new Promise((resolve) => (finish = resolve));
  async function* messages() {
    yield { type: 'user', message: { role: 'user', content: prompt }, parent_tool_use_id: null, session_id: '' };
    // The SDK closes stdin after the last message, and permission requests need it.
    await finished;
  }
  const options = {
    pathToClaudeCodeExecutable: claude,
    cwd,
    env: process.env,
    settingSources: [],
    systemPrompt: { type: 'preset', preset: 'claude_code' },
    permissionMode: 'default',
    canUseTool: async (_tool, input) => ({ behavior: 'allow', updatedInput: input }),
  };
  for await (const message of query({ prompt: messages(), options })) {
    if (message.type === 'result') {
      finish();
      if (message.subtype !== 'success') throw new Error(JSON.stringify(message));
    }
  }
}

await Promise.all(prompts.map(supervise));
