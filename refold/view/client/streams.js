/**
 * The server's events, over few connections.
 *
 * A browser opens six connections to a server for all of its tabs together, and a stream keeps one for good. So at most
 * three streams are open, each under a lock that the tabs share; a tab that gets none asks anew every other second. A tab
 * that nobody sees has no stream: it asks anew when it is seen again.
 */

/** @typedef {import("./api.d.ts").LiveEvent} LiveEvent */

const STREAMS = 3
const POLL_MS = 2000

/** @param {string} address @param {(event: LiveEvent) => void} heard @returns {() => void} - ends it */
export function stream(address, heard) {
  let ended = false
  let tries = false
  /** @type {(() => void) | null} closes the stream that is open */
  let close = null
  /** Open the stream; fulfilled once it is closed. @returns {Promise<void>} */
  const open = () =>
    new Promise((closed) => {
      if (ended || document.hidden) return closed()
      const source = new EventSource(address)
      source.addEventListener("message", (message) => heard(/** @type {LiveEvent} */ (JSON.parse(message.data))))
      close = () => {
        close = null
        source.close()
        closed()
      }
    })
  /** Take the first lock that is free, and hold it as long as the stream is open. */
  const attempt = async () => {
    if (ended || close || tries || document.hidden) return
    if (!navigator.locks) return void open()
    tries = true
    for (let i = 0; i < STREAMS && !ended && !close; i++) {
      await new Promise((settled) => {
        const request = navigator.locks.request(`refold-stream-${i}`, { ifAvailable: true }, (lock) => {
          if (!lock) return settled(null)
          const closed = open()
          settled(null)
          return closed
        })
        request.catch(() => settled(null)) // the page was paused, by a window that it opened, say: the next attempt gets one
      })
    }
    tries = false
  }
  const poll = setInterval(() => {
    if (close || document.hidden) return
    heard({ type: "hello", server: "" })
    void attempt()
  }, POLL_MS)
  const turned = () => (document.hidden ? close?.() : void attempt())
  document.addEventListener("visibilitychange", turned)
  void attempt()
  return () => {
    ended = true
    clearInterval(poll)
    document.removeEventListener("visibilitychange", turned)
    close?.()
  }
}
