/** The source inside an exported file. @param {string} packed @returns {Promise<{ source: import("./api.d.ts").Source, home: string }>} */
export async function local(packed) {
  throw new Error(`not here yet: ${packed.length}`)
}
