// Plays opencode's side of a plugin's hooks and prints what the plugin did, as JSON.
// node opencode.mjs PLUGIN FOLDER SESSION
import { pathToFileURL } from "node:url"

const [, , path, directory, SESSION] = process.argv
const { MemoryService } = await import(pathToFileURL(path).href)

const time = { created: 1, completed: 2 }
let number = 0
const text = (messageID, words, more = {}) => ({ id: `prt_${number++}`, sessionID: SESSION, messageID, type: "text", text: words, ...more })
const user = (id, words) => ({ info: { id, sessionID: SESSION, role: "user", time }, parts: [text(id, words)] })
const listed = [
  user("msg_1", "When do we deploy? Never on Fridays, please. 备份由林负责。"),
  {
    info: { id: "msg_2", sessionID: SESSION, role: "assistant", time },
    parts: [
      { type: "tool", callID: "c1", tool: "ls", state: { status: "completed", input: { path: "." }, output: "a b" } },
      text("msg_2", "Noted."),
    ],
  },
]
const parents = { [SESSION]: undefined, ses_child: SESSION }
const client = {
  session: {
    get: async ({ path }) => ({ data: { parentID: parents[path.id] } }),
    messages: async () => ({ data: listed }),
  },
}
const hooks = await MemoryService({ client, directory })

async function prompted(message, sessionID = SESSION) {
  await hooks["chat.message"]({ sessionID, model: { modelID: "m" } }, { message: message.info, parts: message.parts })
}
async function sent() {
  const output = { messages: structuredClone(listed) }
  await hooks["experimental.chat.messages.transform"]({}, output)
  return output.messages.map((each) => each.parts.filter((part) => part.synthetic))
}

const answers = {}
await prompted(listed[0])
const url = process.env.MEMORY_SERVICE_URL
if (url) {
  // A server that is away for a while.
  process.env.MEMORY_SERVICE_URL = "http://127.0.0.1:9"
  await hooks.event({ event: { type: "session.idle", properties: { sessionID: SESSION } } })
  process.env.MEMORY_SERVICE_URL = url
}
await hooks.event({ event: { type: "session.idle", properties: { sessionID: SESSION } } })
await hooks.event({ event: { type: "session.idle", properties: { sessionID: SESSION } } })
listed.push({ ...user("msg_3", "When do we deploy?"), sessionID: SESSION })
await prompted(listed[2])
answers.first = await sent()
answers.again = await sent()
const compacting = { context: [] }
await hooks["experimental.session.compacting"]({ sessionID: SESSION }, compacting)
answers.compacting = compacting.context
await hooks.event({ event: { type: "session.compacted", properties: { sessionID: SESSION } } })
listed.push(user("msg_4", "Go on."))
await prompted(listed[3])
answers.compacted = (await sent())[3]
listed.push(user("msg_5", "When do we deploy?"))
await prompted(listed[4], "ses_child")
answers.subagent = (await sent())[4]
console.log(JSON.stringify(answers))
