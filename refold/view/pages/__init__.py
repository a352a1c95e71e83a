"""The answers to the page's questions, as JSON.

Each file answers one question. The forms are those of `refold/view/client/api.d.ts`; each function is named after the
method there that it answers.
"""
