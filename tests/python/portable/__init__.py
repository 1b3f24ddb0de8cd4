"""The portable rules by subject; `test_portable.py` runs them."""
