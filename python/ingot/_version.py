"""The version of src/ingot.h, which a test compares."""
__version__ = "0.1.0"
