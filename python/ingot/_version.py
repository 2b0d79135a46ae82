"""The version of src/ingot.h; a test compares them."""
__version__ = "0.1.0"
