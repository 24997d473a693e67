"""Reads one turn with the Claude Agent SDK for Python and prints the number of messages of the assistant and the user, and when the result
arrived.

Argument: {"claude": path, "cwd": path, "prompt": text, "env": {name: value}}.
"""

import asyncio
import json
import sys
import time

from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, UserMessage


async def main():
    work = json.loads(sys.argv[1])
    options = ClaudeAgentOptions(cli_path=work["claude"], cwd=work["cwd"], env=work["env"], setting_sources=[])
    messages = 0
    async with ClaudeSDKClient(options=options) as client:
        await client.query(work["prompt"])
        async for message in client.receive_response():
            if isinstance(message, (AssistantMessage, UserMessage)):
                messages += 1
            if isinstance(message, ResultMessage):
                # The monotonic clock of the system.
                end = time.monotonic_ns()
                if message.is_error:
                    raise RuntimeError(str(message))
                print(json.dumps({"messages": messages, "end_ns": str(end)}))


asyncio.run(main())
