"""The one exception that is meant for a person."""


class LitmusError(Exception):
    """Something a person can mend: one sentence that says what is wrong, where, and what to do.

    Command lines print it and end with exit code 2; notebooks show it as the last line of the failing cell.
    """
