"""Words of the demo, in the language that it is told in."""
