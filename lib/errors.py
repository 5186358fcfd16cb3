"""The one exception that is meant for a person."""

LONGEST = 1000
"""Characters of a sentence: what a file holds may be quoted in it, and can be a megabyte."""


class LitmusError(Exception):
    """Something a person can mend: one sentence that says what is wrong, where, and what to do.

    Command lines print it and end with exit code 2; notebooks show it as the last line of the failing cell. What a terminal
    would obey (line ends, colours, marks that turn the direction of writing) is written out, and the middle of a sentence that
    would fill the screen is left out: where it begins says where, how it ends says what to do.
    """

    def __init__(self, sentence: object = ""):
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(sentence))
        if len(text) > LONGEST:
            text = f"{text[: LONGEST * 2 // 3]} ... {text[-LONGEST // 4 :]}"
        super().__init__(text)
