"""The answers to the page's questions, as JSON.

Each file answers one question. `refold/view/client/api.d.ts` declares the forms; each function has the name of the
method there that it answers.
"""
