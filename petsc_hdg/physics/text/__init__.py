"""The user's text: where it comes from, C's preprocessor as far as it is needed, the syntax tree."""
