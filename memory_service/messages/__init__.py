"""The shapes of messages: one inner form, read from OpenAI's and Anthropic's, written back as either.

```
calls, parts  ->  shapes (the inner form)  ->  reading, writing
```
Invariants: pure; no message is changed in place; what was said is kept as it came, even where no API takes it, and
is made valid only when it goes out.
"""
