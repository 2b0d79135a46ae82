"""Exceptions that end a test."""


class Fail(Exception):
    """The test found a defect; the text is printed."""


class Skip(Exception):
    """The test could not run or does not apply; the text is the reason."""
