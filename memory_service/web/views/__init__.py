"""The views: a visit in, a page out, by the service's use cases alone."""
