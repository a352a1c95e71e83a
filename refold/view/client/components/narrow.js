/** Whether the page is as narrow as a phone. */

import { useEffect, useState } from "../vendor/preact.js"

/** @param {string} query @returns {boolean} */
export function useMedia(query) {
  const media = matchMedia(query)
  const [fits, setFits] = useState(media.matches)
  useEffect(() => {
    const look = () => setFits(media.matches)
    media.addEventListener("change", look)
    return () => media.removeEventListener("change", look)
  }, [query])
  return fits
}

export const useNarrow = () => useMedia("(max-width: 760px)")
