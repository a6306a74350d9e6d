"""The work on the sessions of one workspace, and what every part of it shares: locks, models, events, options."""
