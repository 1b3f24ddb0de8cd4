"""The portable rules, by what they are about; `test_portable.py` runs them."""
