// Asks the plugin's engine for a compaction while its server is away, and prints what OpenClaw's own one answered.
// node handover.mjs PLUGIN
import { pathToFileURL } from "node:url"

const found = { warnings: [] }
const { default: plugin } = await import(pathToFileURL(process.argv[2]).href)
plugin.register({
  pluginConfig: { url: "http://127.0.0.1:9" },
  logger: { warn: (text) => found.warnings.push(text) },
  registerContextEngine: (id, factory) => Object.assign(found, { factory }),
  registerTool: () => {},
  registerMemoryCapability: () => {},
})
const engine = await found.factory({})
const sessionTarget = { agentId: "main", sessionId: "s-1", sessionKey: "agent:main:direct" }
const runtimeContext = { workspaceDir: process.cwd(), provider: "nobody", model: "unknown", config: {} }
const answer = await engine.compact({ ...sessionTarget, sessionTarget, runtimeContext, force: true, tokenBudget: 6000 })
console.log(`\n${JSON.stringify({ answer, warnings: found.warnings })}`)
process.exit(0)
