// Plays OpenClaw's side of its context engine and prints what the plugin did, as JSON.
// node openclaw.mjs PLUGIN SERVER
import { pathToFileURL } from "node:url"

const [, , path, url] = process.argv
const warnings = []

async function registered(config) {
  const found = { tools: () => [] }
  const { default: plugin } = await import(pathToFileURL(path).href)
  plugin.register({
    pluginConfig: config,
    logger: { warn: (text) => warnings.push(text) },
    registerContextEngine: (id, factory) => Object.assign(found, { id, factory }),
    registerTool: (tools) => Object.assign(found, { tools }),
    registerMemoryCapability: (memory) => Object.assign(found, { memory }),
  })
  return { ...found, engine: await found.factory({}) }
}

const user = (text, timestamp = 1) => ({ role: "user", content: text, timestamp })
const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2 }
const assistant = (text, ...calls) => ({
  role: "assistant",
  content: [...(text ? [{ type: "text", text }] : []), ...calls.map((id) => ({ type: "toolCall", id, name: "ls", arguments: {} }))],
  api: "openai-completions", provider: "p", model: "m", usage, stopReason: "stop", timestamp: 2,
})
const result = (id, text) => ({
  role: "toolResult", toolCallId: id, toolName: "ls", content: [{ type: "text", text }], isError: false, timestamp: 3,
})

const call = { sessionId: "s 1", sessionKey: "agent:Main:direct" }
const { id, engine, tools, memory } = await registered({ url })
const answers = { id, info: engine.info, prompt: memory.promptBuilder({ availableTools: new Set(["memory_search"]) }) }

const named = Object.fromEntries(tools(call).map((tool) => [tool.name, tool]))
const use = async (name, given) => (await named[name].execute("t", given)).details
answers.first = await engine.assemble({ ...call, messages: [], prompt: "When do we deploy?", tokenBudget: 8000 })
answers.stored = await use("memory_store", { text: "Deploys go out on Tuesdays. 周五不部署。" })
answers.found = await use("memory_search", { query: "when do we deploy?", maxResults: 1 })
answers.read = await use("memory_get", { path: answers.stored.path, lines: 20 })

const turn = [user("Where is the shop?"), assistant("", "c1"), result("c1", "Graz"), assistant("In Graz.")]
for (const again of [1, 2]) answers[`commit${again}`] = await engine.commitTurn({ ...call, advancementKey: "k1", messages: turn })
const made = await engine.assemble({ ...call, messages: turn, prompt: "When do we deploy?", tokenBudget: 8000 })
answers.second = { same: turn.every((each, n) => made.messages[n] === each), more: made.messages.slice(turn.length) }

const long = [...turn]
for (let n = 0; n < 60; n++) {
  long.push(user(`Question ${n}: ${"what about the order ".repeat(20)}`), assistant("", `t${n}`))
  long.push(result(`t${n}`, `row ${n} `.repeat(120)), assistant(`Answer ${n}: ${"it is on its way ".repeat(20)}`))
}
const cut = await engine.assemble({ ...call, messages: long, tokenBudget: 6000 })
const calls = new Set(cut.messages.flatMap((each) => (each.role === "assistant" ? each.content.map((part) => part.id) : [])))
answers.long = {
  tokens: cut.estimatedTokens,
  count: cut.messages.length,
  last: cut.messages.findLast((each) => !String(each.content).startsWith("<relevant_context>")) === long.at(-1),
  pairs: cut.messages.filter((each) => each.role === "toolResult").every((each) => calls.has(each.toolCallId)),
}
answers.compact = await engine.compact({ ...call, force: true, tokenBudget: 6000 })
await engine.afterTurn({ ...call, messages: [...long, user("And now?"), assistant("Now this.")], prePromptMessageCount: long.length })
answers.ingest = await engine.ingest({ ...call, sessionId: "s2", message: user("alone") })
for (const name of ["晨会", "周会"])
  await engine.ingest({ sessionKey: "agent:林:direct", sessionId: name, message: user(name) })
answers.warnings = [...warnings]

// A server that is not there: the agent goes on.
const down = await registered({ url: "http://127.0.0.1:9" })
const kept = await down.engine.assemble({ ...call, messages: turn, prompt: "x", tokenBudget: 8000 })
answers.down = {
  same: kept.messages === turn,
  authority: kept.promptAuthority,
  ingest: await down.engine.ingest({ ...call, message: user("x") }),
  commit: await down.engine.commitTurn({ ...call, advancementKey: "k", messages: turn }),
  found: (await down.tools(call)[0].execute("t", { query: "x" })).details,
}
await down.engine.afterTurn({ ...call, messages: turn, prePromptMessageCount: 0 })
await down.engine.dispose()
answers.down.warnings = warnings.length - answers.warnings.length
console.log(JSON.stringify(answers))
