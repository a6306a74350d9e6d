"""The gateway: providers' own protocols in front of the sessions of a service.

A client points its base URL here; what it says becomes a session, and what goes to its provider is the view of that.
"""
