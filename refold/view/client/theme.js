/**
 * Sets the theme before the first paint: the one that was chosen here, otherwise the system's. A plain script, so that it
 * runs at once.
 *
 * Paper is always light. Style sheets know that by themselves, drawings do not, so the page has the light theme while it is
 * printed.
 */
;(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)")
  const paper = matchMedia("print")
  let prints = false
  /** @type {string | null} */
  let chosen = null
  try {
    chosen = localStorage.getItem("refold-theme")
  } catch {
    // storage is off; a choice lasts as long as the page
  }
  const set = () => {
    const theme = prints ? "light" : (chosen ?? (dark.matches ? "dark" : "light"))
    if (document.documentElement.dataset.theme !== theme) document.documentElement.dataset.theme = theme
  }
  /** @param {boolean} on */
  const print = (on) => {
    prints = on
    set()
  }
  set()
  dark.addEventListener("change", set)
  paper.addEventListener("change", () => print(paper.matches))
  addEventListener("beforeprint", () => print(true)) // the style sheets are not yet those of paper
  addEventListener("afterprint", () => print(false))
  addEventListener("refold-theme", (event) => {
    chosen = /** @type {CustomEvent<string>} */ (event).detail
    try {
      localStorage.setItem("refold-theme", chosen)
    } catch {
      // see above
    }
    set()
  })
})()
