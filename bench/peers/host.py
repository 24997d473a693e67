"""Supervises children with the Claude Agent SDK for Python: allows every call in `can_use_tool`, and ends when all turns have ended.

Argument: {"claude": path, "cwd": path, "prompts": [text]}.
"""

import asyncio
import json
import sys

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, PermissionResultAllow, ResultMessage


async def allow(_tool, tool_input, _context):
    return PermissionResultAllow(updated_input=tool_input)


async def supervise(claude, cwd, prompt):
    options = ClaudeAgentOptions(
        cli_path=claude,
        cwd=cwd,
        setting_sources=[],
        system_prompt={"type": "preset", "preset": "claude_code"},
        permission_mode="default",
        can_use_tool=allow,
    )
    async with ClaudeSDKClient(options=options) as client:
        await client.query(prompt)
        async for message in client.receive_response():
            if isinstance(message, ResultMessage) and message.subtype != "success":
                raise RuntimeError(str(message))


async def main():
    work = json.loads(sys.argv[1])
    await asyncio.gather(*(supervise(work["claude"], work["cwd"], prompt) for prompt in work["prompts"]))


asyncio.run(main())
