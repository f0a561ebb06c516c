"""The tour of `labelweave demo`: each condition of labels, its method, and a plain baseline."""
