"""The tour of `labelweave demo`: each condition of labels, its method, and simple baselines."""
