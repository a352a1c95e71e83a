"""Truncation of long texts in the middle."""

_GAP = "..."


def cut_middle(text: str, length: int) -> str:
    """Return the text in at most `length` characters.

    A longer text becomes its beginning, `...` and its end.
    """
    if len(text) <= length:
        return text
    half = (length - len(_GAP)) // 2
    if half < 1:
        return text[: max(0, length)]
    return f"{text[:half]}{_GAP}{text[-half:]}"
