"""Cuts a long text in its middle, so that its beginning and its end stay."""

_GAP = "..."


def cut_middle(text: str, length: int) -> str:
    """The text in at most `length` characters: where it has more, its beginning, `...` and its end."""
    if len(text) <= length:
        return text
    half = (length - len(_GAP)) // 2
    if half < 1:
        return text[: max(0, length)]
    return f"{text[:half]}{_GAP}{text[-half:]}"
