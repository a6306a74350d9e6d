/**
 * memory-service for opencode: memories with each prompt, and before a compaction; what was said is stored.
 *
 * Written by `memory-service connect opencode`, taken out again by `memory-service disconnect opencode`.
 *
 * Each event goes to a server, if an address is known (MEMORY_SERVICE_URL, or `connect --url`), else to the command
 * `memory-service hook opencode`, which finds a server of its own. Nothing here ever fails an agent's turn.
 */
import { spawn } from "node:child_process"
import type { Plugin } from "@opencode-ai/plugin"

type Settings = { url?: string; command?: string[] }
type Said = { id: string; role: string; content: string; tool_calls?: object[]; tool_call_id?: string }
type Listed = Parameters<NonNullable<Hooks["experimental.chat.messages.transform"]>>[1]["messages"][number]
type Hooks = Awaited<ReturnType<Plugin>>

const SETTINGS: Settings = {}

const PATIENCE_MS = 30_000
const LONGEST_WAIT_SECONDS = 10
// So many messages are sent at once.
const MOST_SENT = 200

async function overHttp(url: string, call: object): Promise<string> {
  const key = process.env.MEMORY_SERVICE_API_KEY
  const signal = AbortSignal.timeout(PATIENCE_MS)
  const send = () =>
    fetch(`${url.replace(/\/+$/, "")}/v1/hooks/opencode`, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...(key ? { Authorization: `Bearer ${key}` } : {}) },
      body: JSON.stringify(call),
      signal,
    })
  let answer = await send()
  // The server has too much to do and has done nothing: it says when to ask again.
  const wait = answer.status === 503 ? Number(answer.headers.get("Retry-After")) : 0
  if (wait > 0 && wait <= LONGEST_WAIT_SECONDS) {
    await new Promise((resolve) => setTimeout(resolve, wait * 1000))
    answer = await send()
  }
  return answer.ok ? await answer.text() : ""
}

function byCommand([program, ...options]: string[], call: object): Promise<string> {
  return new Promise((resolve) => {
    const child = spawn(program ?? "", options, { stdio: ["pipe", "pipe", "ignore"], timeout: PATIENCE_MS })
    let printed = ""
    child.stdout.setEncoding("utf8").on("data", (piece: string) => (printed += piece))
    child.on("error", () => resolve(""))
    child.on("close", () => resolve(printed))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(call))
  })
}

/** What the memory answers: its text for the agent, and whether it has kept what it was sent. Never an error. */
async function answered(call: object): Promise<{ text: string; stored: boolean }> {
  try {
    const url = process.env.MEMORY_SERVICE_URL || SETTINGS.url
    const answer = JSON.parse(url ? await overHttp(url, call) : await byCommand(SETTINGS.command ?? [], call))
    const text: unknown = answer.additional_context
    return { text: typeof text === "string" ? text : "", stored: answer.stored === true }
  } catch {
    return { text: "", stored: false }
  }
}

/** A message as the memory stores it: the words, the calls of tools and their results. */
function said({ info, parts }: Listed): Said[] {
  if (info.role === "assistant" && !info.time.completed) return []
  const texts = parts.flatMap((part) => (part.type === "text" && !part.synthetic && !part.ignored ? [part.text] : []))
  const tools = parts.flatMap((part) => (part.type === "tool" && part.state.status === "completed" ? [part] : []))
  const calls = tools.map((part) => ({
    id: part.callID,
    type: "function",
    function: { name: part.tool, arguments: JSON.stringify(part.state.input) },
  }))
  const content = texts.join("\n\n")
  if (!content && !calls.length) return []
  const results = tools.map((part) => ({
    id: `${info.id}:${part.callID}`,
    role: "tool",
    tool_call_id: part.callID,
    content: part.state.status === "completed" ? part.state.output : "",
  }))
  return [{ id: info.id, role: info.role, content, ...(calls.length ? { tool_calls: calls } : {}) }, ...results]
}

export const MemoryService: Plugin = async ({ client, directory }) => {
  const notes = new Map<string, string>()
  const begun = new Map<string, string>()
  const sent = new Map<string, Set<string>>()
  const subagents = new Map<string, boolean>()

  const ask = (event: string, session: string, more: object = {}) =>
    answered({ hook_event_name: event, session_id: session, cwd: directory, ...more })

  /** True for the session of a subagent: what it is told and says belongs to the one that called it. */
  async function isSubagent(session: string): Promise<boolean> {
    const known = subagents.get(session)
    if (known !== undefined) return known
    const found = Boolean((await client.session.get({ path: { id: session } })).data?.parentID)
    subagents.set(session, found)
    return found
  }

  /** Sends what is new; what the memory does not say that it has kept is sent again with the next event. */
  async function store(event: string, session: string): Promise<string> {
    const known = sent.get(session) ?? new Set<string>()
    sent.set(session, known)
    const listed = (await client.session.messages({ path: { id: session } })).data ?? []
    const fresh = listed.flatMap(said).filter((each) => !known.has(each.id))
    for (let at = 0; ; at += MOST_SENT) {
      const messages = fresh.slice(at, at + MOST_SENT)
      const { text, stored } = await ask(event, session, { messages })
      if (stored) messages.forEach((each) => known.add(each.id))
      if (!stored || at + MOST_SENT >= fresh.length) return text
    }
  }

  /** Runs a hook so that nothing of it reaches the agent but what it did. */
  const safely =
    <I, O>(work: (input: I, output: O) => Promise<void>) =>
    async (input: I, output: O): Promise<void> => {
      try {
        await work(input, output)
      } catch {
        // The agent goes on without the memory.
      }
    }

  return {
    "chat.message": safely(async (input, output) => {
      if (await isSubagent(input.sessionID)) return
      const prompt = output.parts.flatMap((part) => (part.type === "text" && !part.synthetic ? [part.text] : [])).join("\n")
      const source = begun.get(input.sessionID) ?? "startup"
      const opening = source ? (await ask("session_start", input.sessionID, { source })).text : ""
      begun.set(input.sessionID, "")
      const { text: recalled } = await ask("prompt", input.sessionID, { prompt, model: input.model?.modelID })
      const note = [opening, recalled].filter(Boolean).join("\n\n")
      if (note) notes.set(output.message.id, note)
    }),
    // Behind the words of its turn, the same at each call: a provider's cache of the prompt stays good.
    "experimental.chat.messages.transform": safely(async (_, output) => {
      for (const { info, parts } of output.messages) {
        const note = notes.get(info.id)
        const own = { sessionID: info.sessionID, messageID: info.id, type: "text", synthetic: true } as const
        if (note) parts.push({ ...own, id: `prt_memory_${info.id}`, text: note })
      }
    }),
    "experimental.session.compacting": safely(async (input, output) => {
      if (await isSubagent(input.sessionID)) return
      const note = await store("pre_compact", input.sessionID)
      if (note) output.context.push(note)
    }),
    event: async ({ event }) =>
      safely(async () => {
        if (event.type === "session.compacted") begun.set(event.properties.sessionID, "compact")
        if (event.type === "session.idle" && !(await isSubagent(event.properties.sessionID)))
          await store("stop", event.properties.sessionID)
      })(undefined, undefined),
  }
}
