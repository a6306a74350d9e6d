"""Records of session logs: values, their lines, their media, and a search of them."""
