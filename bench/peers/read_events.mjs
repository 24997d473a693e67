// Reads one turn with the Claude Agent SDK for TypeScript and prints the number of messages of the assistant and the user, and when the
// result arrived. Argument: {"claude": path, "cwd": path, "prompt": text, "env": {name: value}}.
import { query } from '@anthropic-ai/claude-agent-sdk';

const { claude, cwd, prompt, env } = JSON.parse(process.argv[2]);

let finish;
const finished = new Promise((resolve) => (finish = resolve));
async function* prompts() {
  yield { type: 'user', message: { role: 'user', content: prompt }, parent_tool_use_id: null, session_id: '' };
  await finished;
}

const options = { pathToClaudeCodeExecutable: claude, cwd, env: { ...process.env, ...env }, settingSources: [] };
let messages = 0;
for await (const message of query({ prompt: prompts(), options })) {
  if (message.type === 'assistant' || message.type === 'user') messages += 1;
  if (message.type === 'result') {
    // The monotonic clock of the system.
    const end = process.hrtime.bigint();
    if (message.is_error) throw new Error(JSON.stringify(message));
    console.log(JSON.stringify({ messages, end_ns: end.toString() }));
    finish();
  }
}
