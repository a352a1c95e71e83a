// Reads a run's stream with the client packages of AG-UI and of Vercel's AI SDK, as a page does.
// Arguments: the folder of node_modules, the form, the address, and the numbers of bytes after which the connection is
// lost, one reading for each; the number of the reading is the last part of the path. Prints, for each reading, what the package has understood.
const { createRequire } = require("node:module");
const [modules, form, address, ...cuts] = process.argv.slice(2);
const load = createRequire(modules + "/");
const { createParser } = load("eventsource-parser");

/** Yields the events of the stream, and connects again after the last one when the connection is lost. */
async function* events(reading, cut) {
  let last = "";
  for (let left = cut; ; left = Infinity) {
    const response = await fetch(`${address}/${reading}`, { headers: last ? { "last-event-id": last } : {} });
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    const found = [];
    const parser = createParser({ onEvent: (event) => found.push(event) });
    const decoder = new TextDecoder();
    let lost = false;
    for await (const chunk of response.body) {
      const kept = chunk.subarray(0, left);
      left -= kept.length;
      parser.feed(decoder.decode(kept, { stream: true }));
      for (const event of found.splice(0)) {
        last = event.id ?? last;
        if (event.data !== "[DONE]") yield JSON.parse(event.data);
      }
      if (left <= 0) {
        lost = true;
        break; // closes the connection
      }
    }
    if (!lost) return;
  }
}

async function agui(reading, cut) {
  const { AbstractAgent } = load("@ag-ui/client");
  const { Observable } = load("rxjs");
  class Reader extends AbstractAgent {
    run() {
      return new Observable((subscriber) => {
        (async () => {
          for await (const event of events(reading, cut)) subscriber.next(event);
          subscriber.complete();
        })().catch((error) => subscriber.error(error));
      });
    }
  }
  const agent = new Reader({ threadId: "thread" });
  let outcome = null;
  await agent.runAgent({}, {
    onRunFinishedEvent: ({ event }) => { outcome = event.outcome ?? null; },
    onRunErrorEvent: ({ event }) => { outcome = { type: "error", message: event.message }; },
  }).catch((error) => { outcome ??= { type: "error", message: String(error.message ?? error) }; });
  return { messages: agent.messages, outcome };
}

async function vercel(reading, cut) {
  const { readUIMessageStream } = load("ai");
  const source = events(reading, cut);
  const stream = new ReadableStream({
    async pull(controller) {
      const { value, done } = await source.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
  });
  const errors = [];
  let message = null;
  const onError = (error) => { errors.push(String(error.message ?? error)); };
  for await (const each of readUIMessageStream({ stream, onError, terminateOnError: false })) message = each;
  return { parts: message?.parts ?? [], errors };
}

(async () => {
  const read = { agui, vercel }[form];
  const results = [];
  for (const [reading, cut] of cuts.entries()) results.push(await read(reading, cut === "whole" ? Infinity : Number(cut)));
  console.log(JSON.stringify(results));
})().catch((error) => { console.error(error); process.exit(1); });
