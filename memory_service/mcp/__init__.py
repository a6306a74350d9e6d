"""The door for hosts of the Model Context Protocol: six tools over one service, by stdio or HTTP.

Nothing here is imported before the door is used: the protocol's package takes longer to import than a search takes.
"""
