/**
 * memory-service for OpenClaw: its context engine and its memory, over HTTP.
 *
 * Written by `memory-service connect openclaw`, taken out again by `memory-service disconnect openclaw`.
 *
 * The transcript stays OpenClaw's. What an agent may see of it is made by the server, which keeps a log of its own;
 * messages that come back as they were are handed on as they were. Where the server does not answer, a prompt is what
 * it would be without an engine, and a compaction is OpenClaw's own: nothing here ever fails an agent's turn.
 */
import { createHash } from "node:crypto"
import type { AnyAgentTool, OpenClawPluginApi } from "openclaw/plugin-sdk/plugin-entry"

type Factory = Parameters<OpenClawPluginApi["registerContextEngine"]>[1]
type Engine = Awaited<ReturnType<Factory>>
type AgentMessage = Parameters<Engine["ingest"]>[0]["message"]
type CompactCall = Parameters<Engine["compact"]>[0]
type Sent = { role: string; content: string; tool_calls?: ToolCall[]; tool_call_id?: string }
type ToolCall = { id: string; type: "function"; function: { name: string; arguments: string } }
type Config = { url?: string; workspace?: string; memoryBudgetTokens?: number }
type Prompt = { messages: Sent[]; tokens: { total: number }; session_id: string }
type Session = { sessionId: string; sessionKey?: string; agentId?: string }

const NAME = "memory-service"
const PATIENCE_MS = 60_000
const LONGEST_WAIT_SECONDS = 10
const MOST_CHARS = 12_000
const UNSAFE = /[^A-Za-z0-9._-]+/g

/** An answer of the server that is none of use. */
class Refused extends Error {
  readonly status: number

  constructor(status: number, text: string) {
    super(`the server answered ${status}: ${text.slice(0, 300)}`)
    this.status = status
  }
}

class Server {
  private readonly url: string
  private readonly config: Config

  constructor(config: Config) {
    this.config = config
    this.url = (process.env.MEMORY_SERVICE_URL || config.url || "http://127.0.0.1:8765").replace(/\/+$/, "")
  }

  /** Without a workspace of its own each agent has one. */
  workspace(agent: string): string {
    return this.config.workspace || `openclaw-${safeName(agent.toLowerCase(), 51)}`
  }

  workspaceOf({ sessionKey, agentId }: { sessionKey?: string; agentId?: string }): string {
    return this.workspace(agentId || /^agent:([^:]+):/.exec(sessionKey ?? "")?.[1] || "main")
  }

  async ask<T>(path: string, body?: object, headers: Record<string, string> = {}, signal?: AbortSignal): Promise<T> {
    const key = process.env.MEMORY_SERVICE_API_KEY
    const patience = AbortSignal.timeout(PATIENCE_MS)
    const send = () =>
      fetch(`${this.url}/v1/workspaces/${path}`, {
        method: body ? "POST" : "GET",
        headers: { "Content-Type": "application/json", ...(key ? { Authorization: `Bearer ${key}` } : {}), ...headers },
        body: body ? JSON.stringify(body) : undefined,
        signal: signal ? AbortSignal.any([signal, patience]) : patience,
      })
    let answer = await send()
    // The server has too much to do and has done nothing: it says when to ask again.
    const wait = answer.status === 503 ? Number(answer.headers.get("Retry-After")) : 0
    if (wait > 0 && wait <= LONGEST_WAIT_SECONDS) {
      await new Promise((resolve) => setTimeout(resolve, wait * 1000))
      answer = await send()
    }
    if (!answer.ok) throw new Refused(answer.status, await answer.text())
    return (await answer.json()) as T
  }
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content
  const parts = Array.isArray(content) ? (content as { type?: string; text?: string }[]) : []
  return parts.map((part) => (part.type === "text" ? (part.text ?? "") : part.type === "image" ? "[image]" : "")).join("")
}

/** A message in OpenAI's shape; nothing for those that no model is sent as they are. */
function sent(message: AgentMessage): Sent[] {
  switch (message.role) {
    case "user":
      return [{ role: "user", content: textOf(message.content) }]
    case "assistant": {
      const calls = message.content.flatMap((part) =>
        part.type === "toolCall"
          ? [{ id: part.id, type: "function" as const, function: { name: part.name, arguments: JSON.stringify(part.arguments) } }]
          : [],
      )
      const content = textOf(message.content)
      return content || calls.length ? [{ role: "assistant", content, ...(calls.length ? { tool_calls: calls } : {}) }] : []
    }
    case "toolResult":
      return [{ role: "tool", content: textOf(message.content), tool_call_id: message.toolCallId }]
    default:
      return []
  }
}

function signature({ role, content, tool_calls, tool_call_id }: Sent): string {
  const calls = (tool_calls ?? []).map((call) => call.id).join(" ")
  // The calls and the id of a result tell which message it is, also when its text was cut.
  return calls || tool_call_id ? `${role} ${calls} ${tool_call_id ?? ""}` : `${role} ${content ?? ""}`
}

/**
 * The server's messages as OpenClaw has them: those that it knows are its own, the others are of the user.
 *
 * Memories are for the turn that comes: they stand at the end, so that a provider's cache of what is before stays good.
 */
function returned(messages: Sent[], known: AgentMessage[]): AgentMessage[] {
  const originals = new Map<string, AgentMessage[]>()
  for (const message of known)
    for (const each of sent(message)) originals.set(signature(each), [...(originals.get(signature(each)) ?? []), message])
  const recalled = messages.filter(isRecalled).map((each) => said(each.content, known.at(-1)))
  // From the end: of two messages with the same words it is the later one that is still there.
  const kept = messages.filter((each) => !isRecalled(each)).toReversed().map((message): AgentMessage => {
    const original = originals.get(signature(message))?.pop()
    if (!original) return said(message.content, known.at(0))
    const cut = original.role === "toolResult" && textOf(original.content) !== message.content
    return cut ? { ...original, content: [{ type: "text", text: message.content }] } : original
  })
  return [...kept.toReversed(), ...recalled]
}

function isRecalled({ role, content }: Sent): boolean {
  return role === "user" && content.startsWith("<relevant_context>")
}

function said(content: string, beside?: AgentMessage): AgentMessage {
  return { role: "user", content, timestamp: typeof beside?.timestamp === "number" ? beside.timestamp : Date.now() }
}

function sessionName(sessionId: string): string {
  return `openclaw-${safeName(sessionId, 111)}`
}

/** A name that the server takes; letters of other scripts tell names apart, and so does what is too long. */
function safeName(name: string, mostChars: number): string {
  const plain = name.replace(UNSAFE, "-")
  if (plain.length <= mostChars && !/[^\x00-\x7f]/.test(name)) return plain
  return `${plain.slice(0, mostChars - 9)}-${digest(name).slice(0, 8)}`
}

function estimated(messages: AgentMessage[]): number {
  return Math.ceil(messages.flatMap(sent).reduce((sum, each) => sum + JSON.stringify(each).length, 0) / 4)
}

/** OpenClaw's own compaction, for when the server cannot make one. */
async function nativeCompaction(call: CompactCall): ReturnType<Engine["compact"]> {
  const { delegateCompactionToRuntime } = await import("openclaw/plugin-sdk/core")
  return delegateCompactionToRuntime(call)
}

function engine(server: Server, config: Config, complain: (what: string, error: unknown) => void): Engine {
  // The log of a conversation that was edited goes on in a branch: where it goes on now.
  const places = new Map<string, string>()
  const place = (call: Session) =>
    `${server.workspaceOf(call)}/sessions/${places.get(call.sessionId) ?? sessionName(call.sessionId)}`

  async function conversation(call: Session & { messages: AgentMessage[] }, options: object): Promise<Prompt> {
    const home = `${server.workspaceOf(call)}/sessions/${sessionName(call.sessionId)}`
    const made = await server.ask<Prompt>(`${home}/conversation`, { messages: call.messages.flatMap(sent), ...options })
    places.set(call.sessionId, made.session_id)
    return made
  }

  async function append(call: Session & { messages: AgentMessage[] }, key: string): Promise<void> {
    const messages = call.messages.flatMap(sent)
    if (messages.length) await server.ask(`${place(call)}/messages`, { messages }, { "Idempotency-Key": key })
  }

  /** Memories for a first prompt: there is no conversation yet. */
  async function memories(call: Session, prompt: string): Promise<AgentMessage[]> {
    const budget_tokens = config.memoryBudgetTokens ?? 2_000
    const body = { query: prompt.slice(0, 4_000), budget_tokens }
    try {
      const { block } = await server.ask<{ block: string }>(`${server.workspaceOf(call)}/context`, body)
      return block ? [said(block)] : []
    } catch (error) {
      // An agent that never said anything has no memory yet.
      if (error instanceof Refused && error.status === 404) return []
      throw error
    }
  }

  return {
    info: {
      id: NAME,
      name: NAME,
      ownsCompaction: true,
      acceptedHostParams: ["sessionKey", "prompt"],
      transcriptSemantics: {
        currentTurnFence: "before-current-turn-entry-v1",
        turnAdvancementIdempotency: "atomic-idempotent-v1",
      },
    },

    async ingest({ message, ...call }) {
      try {
        await append({ ...call, messages: [message] }, digest(call.sessionId, message))
        return { ingested: true }
      } catch (error) {
        complain("a message was not stored", error)
        return { ingested: false }
      }
    },

    /** All that was said: what the server has already, it knows. */
    async afterTurn(call) {
      try {
        if (call.messages.flatMap(sent).length) await conversation(call, { recall: "never", memory_budget_tokens: 0 })
      } catch (error) {
        complain("a turn was not stored", error)
      }
    },

    async commitTurn(call) {
      try {
        await append(call, digest(call.sessionId, call.advancementKey))
      } catch (error) {
        // The next prompt sends the whole conversation, with this turn in it.
        complain("a turn was not stored yet", error)
      }
      return { status: "committed" }
    },

    async assemble(call) {
      const { messages, prompt, tokenBudget, model } = call
      try {
        if (!messages.flatMap(sent).length) {
          const first = prompt ? await memories(call, prompt) : []
          return { messages: [...first, ...messages], estimatedTokens: estimated([...first, ...messages]) }
        }
        const made = await conversation(call, {
          ...(prompt ? { query: prompt.slice(0, 4_000) } : {}),
          ...(tokenBudget ? { max_tokens: tokenBudget } : {}),
          ...(model ? { model } : {}),
          memory_budget_tokens: config.memoryBudgetTokens ?? 2_000,
        })
        return { messages: returned(made.messages, messages), estimatedTokens: made.tokens.total }
      } catch (error) {
        complain("the prompt is what it would be without a memory", error)
        return { messages, estimatedTokens: estimated(messages), promptAuthority: "preassembly_may_overflow" }
      }
    },

    async compact(call) {
      try {
        const body = {
          mode: "apply",
          trigger: call.force ? "overflow" : "threshold",
          force: call.force ?? false,
          ...(call.tokenBudget ? { target_tokens: Math.floor(call.tokenBudget / 2) } : {}),
          ...(call.customInstructions ? { instructions: call.customInstructions } : {}),
        }
        const made = await server.ask<{ tokens_before: number; tokens_after: number; compaction_id: string; reason?: string }>(
          `${place(call)}/compact`, body, {}, call.abortSignal,
        )
        const compacted = made.tokens_after < made.tokens_before
        const result = { tokensBefore: made.tokens_before, tokensAfter: made.tokens_after, details: made.compaction_id }
        return { ok: true, compacted, ...(compacted ? { result } : { reason: made.reason || "nothing to compact" }) }
      } catch (error) {
        complain("the compaction is OpenClaw's own", error)
        return await nativeCompaction(call)
      }
    },

    async dispose() {
      places.clear()
    },
  }
}

function digest(...parts: unknown[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex")
}

type Found = { path: string; start_line: number; end_line: number; text: string; score: number; citation: string }

/** The tools of a memory, as OpenClaw's own memory names them. */
function tools(server: Server, workspace: string): AnyAgentTool[] {
  const answer = (value: unknown) => ({ content: [{ type: "text" as const, text: JSON.stringify(value, null, 1) }], details: value })
  const text = { type: "string" }
  const count = { type: "integer", minimum: 1 }
  const tool = (name: string, description: string, properties: object, required: string[], work: (given: any) => Promise<unknown>) => ({
    name,
    label: name,
    description,
    parameters: { type: "object", properties, required },
    execute: async (_id: string, given: unknown) => {
      try {
        return answer(await work(given))
      } catch (error) {
        const action = "Go on without it; the memory's server does not answer."
        return answer({ results: [], unavailable: true, error: String(error), action })
      }
    },
  })
  return [
    tool(
      "memory_search",
      "Search memory for earlier work, decisions, dates, people, preferences and open tasks before answering about them.",
      { query: text, maxResults: { ...count, maximum: 50 }, minScore: { type: "number" } },
      ["query"],
      async ({ query, maxResults, minScore }) => {
        const body = { query, limit: maxResults ?? 6, ...(minScore === undefined ? {} : { min_score: minScore }) }
        const found = await server.ask<{ results: Found[]; mode: string }>(`${workspace}/search`, body)
        const results = found.results.map(({ start_line, end_line, text: snippet, ...rest }) => ({
          ...rest, startLine: start_line, endLine: end_line, snippet,
        }))
        return { results, mode: found.mode }
      },
    ),
    tool(
      "memory_get",
      "Read lines of a memory file that memory_search named.",
      { path: text, from: count, lines: count },
      ["path"],
      async ({ path, from, lines }) => {
        const where = path.split("/").map(encodeURIComponent).join("/")
        const range = `start_line=${from ?? 1}&lines=${lines ?? 120}`
        const found = await server.ask<{ text: string; next_start_line: number | null }>(`${workspace}/memories/${where}?${range}`)
        const shown = found.text.slice(0, MOST_CHARS)
        const more = found.next_start_line ? { truncated: true, nextFrom: found.next_start_line } : {}
        return { status: "ok", path, text: shown, from: from ?? 1, ...more }
      },
    ),
    tool(
      "memory_store",
      "Keep one lasting fact, decision or preference in one sentence that can be understood alone.",
      { text },
      ["text"],
      async (given) => server.ask(`${workspace}/memories`, { text: given.text, origin: "agent" }),
    ),
  ] as unknown as AnyAgentTool[]
}

export default {
  id: NAME,
  name: NAME,
  description: "Long-term memory and context engine.",
  register(api: OpenClawPluginApi): void {
    const config = (api.pluginConfig ?? {}) as Config
    const server = new Server(config)
    const complain = (what: string, error: unknown) => api.logger.warn(`${NAME}: ${what} (${String(error)})`)
    api.registerContextEngine(NAME, () => engine(server, config, complain))
    api.registerTool((context) => tools(server, server.workspaceOf(context)), {
      names: ["memory_search", "memory_get", "memory_store"],
    })
    api.registerMemoryCapability({
      promptBuilder: ({ availableTools }) =>
        availableTools.has("memory_search")
          ? ["## Memory", "Before you answer about earlier work, decisions, dates, people, preferences or open tasks: memory_search, then memory_get for what stands around a result. Keep lasting facts with memory_store."]
          : [],
    })
  },
}
