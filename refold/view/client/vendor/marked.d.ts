/** What the page uses of marked. */

export class Marked {
  constructor(options: {
    gfm?: boolean
    breaks?: boolean
    async?: false
    renderer?: { html?: (token: { text: string }) => string, checkbox?: (token: { checked: boolean }) => string }
  })
  parse(text: string): string | Promise<string>
}
