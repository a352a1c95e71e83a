/** Sets the theme before the first paint: the one that was chosen here, otherwise the system's. A plain script, so that it runs at once. */
;(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)")
  /** @returns {string | null} */
  const chosen = () => {
    try {
      return localStorage.getItem("refold-theme")
    } catch {
      return null // storage is off; the theme lasts as long as the page
    }
  }
  const set = () => {
    document.documentElement.dataset.theme = chosen() ?? (dark.matches ? "dark" : "light")
  }
  set()
  dark.addEventListener("change", set)
})()
