"""What the page is given, as JSON: one file for each of its questions.

The forms are those of `refold/view/client/api.d.ts`; each function is named after the method there that it answers.
"""
